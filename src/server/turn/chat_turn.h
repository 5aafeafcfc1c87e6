// begin_chat(): a conversation becomes a turn: a prompt by the model's template, the grammar that
// the request demands, and one request to the engine for each answer.
//
// Threads: on a worker. Errors: ApiErrors that name the field.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "server/api/chat_request.h"
#include "server/client.h"
#include "server/http/http_exchange.h"
#include "server/json.h"
#include "server/served_model.h"
#include "server/turn/turn.h"

namespace slipstream {

// What can be refused before the body is read into a ChatRequest, and anything is built for it.
// fields: the fields of the body that become the prompt.
[[nodiscard]] ApiResult<void> check_chat(const ServedModel& model, const Json& body,
                                         std::initializer_list<std::string_view> fields = {
                                             "messages", "tools"});

struct FieldSize {
  std::string_view name;
  std::size_t n_values;
};
// Refuses fields that together have more JSON values than a context could take, and names the
// largest. For conversations of which a part was stored, and not in the body.
[[nodiscard]] ApiResult<void> check_values(const ServedModel& model,
                                           std::span<const FieldSize> fields);

// The prompt of a conversation. REQUIRES: check_chat().
[[nodiscard]] ApiResult<std::string> prompt_text(const ServedModel& model, ChatRequest request);

// How many tokens the prompt of a conversation has. REQUIRES: check_chat().
[[nodiscard]] ApiResult<std::size_t> count_prompt(const ServedModel& model, ChatRequest request);

// REQUIRES: check_chat().
[[nodiscard]] ApiResult<std::unique_ptr<Turn>> begin_chat(ServedModel& model,
                                                          HttpExchange& exchange,
                                                          ChatRequest request,
                                                          const Client& client);

}  // namespace slipstream
