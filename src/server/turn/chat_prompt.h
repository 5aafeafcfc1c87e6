// make_prompt(): a conversation becomes the text that the model reads. What an index has on it is put
// before its messages, its oldest turns leave if it is longer than its window, and the model's
// template renders what remains.
//
// Threads: on a worker. Errors: ApiErrors that name the field.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/marked_text.h"
#include "engine/text/vocabulary.h"
#include "server/api/chat_request.h"
#include "server/client.h"
#include "server/recall/sources.h"
#include "server/served_model.h"
#include "server/turn/prompt_images.h"

namespace slipstream {

struct FieldSize {
  std::string_view name;
  std::size_t n_values;
};
// Refuses fields that together have more JSON values than could fit into the context, and names the
// largest field.
[[nodiscard]] ApiResult<void> check_values(const ServedModel& model,
                                           std::span<const FieldSize> fields);

struct ChatPrompt {
  MarkedText text;
  std::string first_words;                      // of the user, as the prompt has them
  std::shared_ptr<const ShownSources> sources;  // null: none
  std::size_t n_turns_dropped;
  PromptImages images;
};

// Moves the messages and variables out of the request: the template's values are made of them.
// REQUIRES: check_chat() of chat_turn.h.
[[nodiscard]] ApiResult<ChatPrompt> make_prompt(const ServedModel& model, ChatRequest& request,
                                                const Client& client);
// Refuses a prompt that is longer than the context.
[[nodiscard]] ApiResult<PromptTokens> tokens_of(const ServedModel& model, const ChatPrompt& prompt);

}  // namespace slipstream
