// Retrieval: puts what an index of folders, and the files attached to a chat, have on a user's message
// before that message.
//
// Only a message that is to be answered is searched for. What was put before earlier ones is put there
// again, so that it stays in the conversation and the prompt goes on as it began. Places are
// numbered through the conversation, and a place that it has already is not given twice.
//
// Threads: thread-safe. Calls wait for the index, for less than a second.
// Errors:  ApiErrors: 400 for a project that the client cannot see, a chat without files, or too large
//          a budget; 503 if the index cannot be read.
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
#include "server/attachments/attachment_store.h"
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
  std::shared_ptr<Corpus>
      corpus;  // shared with the server of MCP; null: there is no index of folders
  AttachmentStore* attachments = nullptr;  // outlives this; null: chats have none
  // The project that chats are searched for if they do not say; empty: all projects. None: only
  // chats that ask.
  std::optional<std::string> usual_project = {};
  int n_tokens_max = 1500;  // of what is put before a message, if a chat does not say
};

class Retrieval {
 public:
  explicit Retrieval(RetrievalOptions options) : options_(std::move(options)) {}

  // Changes the messages of the request, if it or the server wants it. n_gone: messages in front that
  // will not be in the prompt: what was put before them may be found again.
  [[nodiscard]] ApiResult<Retrieved> add_to(ChatRequest& request, const Vocabulary& vocabulary,
                                            int n_context, const Client& client,
                                            std::size_t n_gone = 0);

 private:
  struct Folders;
  struct Attached;
  struct Wish;
  // Each none if it is not wanted.
  [[nodiscard]] ApiResult<std::optional<Folders>> read_folders(
      const std::optional<RetrievalDemand>& demand, const Client& client) const;
  [[nodiscard]] ApiResult<std::optional<Attached>> read_attached(const RetrievalDemand& demand,
                                                                 const Client& client) const;
  [[nodiscard]] ApiResult<Wish> read_wish(const ChatRequest& request, const Vocabulary& vocabulary,
                                          int n_context, const Client& client) const;
  struct Question;
  // Finds what goes before the message that is to be answered.
  [[nodiscard]] ApiResult<void> find(Wish& wish, const Question& question);

  const RetrievalOptions options_;
  AddedTexts added_{kAddedBytesMax};

  static constexpr std::size_t kAddedBytesMax = std::size_t{64} << 20;
};

}  // namespace slipstream
