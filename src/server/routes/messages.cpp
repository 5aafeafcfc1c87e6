// POST /v1/messages and POST /v1/messages/count_tokens: Anthropic's API.
#include <memory>
#include <utility>

#include "server/api/messages_error.h"
#include "server/api/messages_request.h"
#include "server/routes/model_route.h"
#include "server/routes/routes.h"
#include "server/routes/turn_answer.h"
#include "server/turn/chat_turn.h"
#include "server/writers/messages_writer.h"

namespace slipstream {
namespace {

Prepared prepare_message(ServedModel& model, HttpExchange& exchange, Json& body,
                         const Client& client) {
  if (const auto checked = check_chat(model, body, {"system", "messages", "tools"}); !checked) {
    return std::unexpected(checked.error());
  }
  ApiResult<MessagesRequest> request = read_messages_request(body);
  if (!request) return std::unexpected(request.error());
  const TurnAnswer::Form form(request->chat.options);
  ApiResult<std::unique_ptr<Turn>> turn =
      begin_chat(model, exchange, std::move(request->chat), client);
  if (!turn) return std::unexpected(turn.error());
  auto writer = std::make_unique<MessagesWriter>(MessagesWriter::Options{
      .model = model.name, .n_prompt = (*turn)->n_prompt(), .wants_cache = request->wants_cache});
  return std::make_unique<TurnAnswer>(std::move(*turn), std::move(writer), form);
}

ApiResult<bool> streams_message(Json& body, const Client& /*client*/) {
  const ApiResult<MessagesRequest> request = read_messages_request(body);
  if (!request) return std::unexpected(request.error());
  return request->chat.options.streams;
}

std::unique_ptr<TurnWriter> early_message_writer(const ServedModel& model) {
  return std::make_unique<MessagesWriter>(
      MessagesWriter::Options{.model = model.name, .n_prompt = 0});
}

Prepared prepare_count(ServedModel& model, HttpExchange& /*exchange*/, Json& body,
                       const Client& client) {
  if (const auto checked = check_chat(model, body, {"system", "messages", "tools"}); !checked) {
    return std::unexpected(checked.error());
  }
  ApiResult<MessagesRequest> request = read_count_tokens_request(body);
  if (!request) return std::unexpected(request.error());
  const ApiResult<std::size_t> n_tokens = count_prompt(model, std::move(request->chat), client);
  if (!n_tokens) return std::unexpected(n_tokens.error());
  return std::make_unique<PreparedReply>(HttpReply{.body = dump({{"input_tokens", *n_tokens}})});
}

Route messages_route(std::string_view path, Prepare prepare, const RouteParts& parts,
                     StreamedAnswers streams = {}) {
  Route route = model_route(path, std::move(prepare), parts, std::move(streams));
  route.refusal = messages_refusal;
  return route;
}

}  // namespace

void add_messages_routes(RouteTable& table, const RouteParts& parts) {
  table.add(
      messages_route("/v1/messages", prepare_message, parts,
                     {.is_asked_for = streams_message, .early_writer = early_message_writer}));
  table.add(messages_route("/v1/messages/count_tokens", prepare_count, parts));
}

}  // namespace slipstream
