// begin_chat(): turns a conversation into a Turn. plan_chat() makes the prompt and the grammar that the
// request demands; one request per answer is submitted to the engine.
//
// Threads: on a worker. Errors: ApiErrors that name the field.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/chat_request.h"
#include "server/client.h"
#include "server/http/http_exchange.h"
#include "server/json.h"
#include "server/served_model.h"
#include "server/turn/turn.h"

namespace slipstream {

// Makes the checks that need no ChatRequest. A refused request has then cost almost no work.
// fields: the fields of the body that become the prompt.
[[nodiscard]] ApiResult<void> check_chat(const ServedModel& model, const Json& body,
                                         std::initializer_list<std::string_view> fields = {
                                             "messages", "tools"});

// The prompt of a conversation. REQUIRES: check_chat().
[[nodiscard]] ApiResult<std::string> prompt_text(const ServedModel& model, ChatRequest request,
                                                 const Client& client);

// The number of tokens of a conversation's prompt. REQUIRES: check_chat().
[[nodiscard]] ApiResult<std::size_t> count_prompt(const ServedModel& model, ChatRequest request,
                                                  const Client& client);

// What the engine is asked for, and how its output is read.
struct ChatPlan {
  std::vector<Token> prompt;
  std::vector<ImagePlace> images;
  int n_tokens_max;
  std::vector<int> boundaries;  // GenerateRequest::boundaries
  OutputParser::Options parsing;
  std::shared_ptr<const ShownSources> sources;  // null: none
  std::size_t n_turns_dropped;
};
// Moves messages out of the request, and completes its sampling. REQUIRES: check_chat().
[[nodiscard]] ApiResult<ChatPlan> plan_chat(const ServedModel& model, ChatRequest& request,
                                            const Client& client);
// The request for the answer with this number, of those to one prompt.
[[nodiscard]] GenerateRequest request_of(const ChatPlan& plan, const ChatRequest& request, int idx,
                                         const Client& client);

// REQUIRES: check_chat().
[[nodiscard]] ApiResult<std::unique_ptr<Turn>> begin_chat(ServedModel& model,
                                                          HttpExchange& exchange,
                                                          ChatRequest request,
                                                          const Client& client);

}  // namespace slipstream
