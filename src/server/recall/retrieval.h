// Retrieval: puts what an index of folders has on a user's message before that message.
//
// Only a message that is to be answered is searched for. What was put before earlier ones is put there again, so that
// it stays in the conversation and the prompt goes on as it began. Places are numbered through the
// conversation, and a place that it has already is not given twice.
//
// Threads: thread-safe. Calls wait for the index, for less than a second.
// Errors:  ApiErrors: 400 for a project that the client cannot see, or too large a budget; 503 if the
//          index cannot be read.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/text/vocabulary.h"
#include "mcp/corpus.h"
#include "server/api/api_error.h"
#include "server/api/chat_request.h"
#include "server/client.h"
#include "server/recall/added_texts.h"
#include "server/recall/sources.h"

namespace slipstream {

// What was put into a conversation.
struct Retrieved {
  ShownSources sources = {};
  // Bytes at the beginning of each message that are not the client's; empty: none are.
  std::vector<std::size_t> n_added = {};
};

struct RetrievalOptions {
  std::shared_ptr<Corpus> corpus;
  // The project that chats are searched for if they do not say; empty: all projects. None: only
  // chats that ask.
  std::optional<std::string> usual_project = {};
  int n_tokens_max = 1500;  // of what is put before a message, if a chat does not say
};

class Retrieval {
 public:
  explicit Retrieval(RetrievalOptions options) : options_(std::move(options)) {}

  // Changes the messages of the request, if it or the server wants it.
  [[nodiscard]] ApiResult<Retrieved> add_to(ChatRequest& request, const Vocabulary& vocabulary,
                                            int n_context, const Client& client);

 private:
  struct Wish;
  // None: nothing is wanted.
  [[nodiscard]] ApiResult<std::optional<Wish>> read_wish(const ChatRequest& request,
                                                         const Vocabulary& vocabulary,
                                                         int n_context, const Client& client) const;
  [[nodiscard]] static ApiResult<AddedText> find(Wish& wish, const std::string& query,
                                                 const std::vector<RecallSource>& shown);

  const RetrievalOptions options_;
  AddedTexts added_{kAddedBytesMax};

  static constexpr std::size_t kAddedBytesMax = std::size_t{64} << 20;
};

}  // namespace slipstream
