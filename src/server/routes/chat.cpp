// POST /v1/chat/completions.
#include <memory>
#include <utility>

#include "server/api/chat_request.h"
#include "server/routes/model_route.h"
#include "server/routes/routes.h"
#include "server/routes/turn_answer.h"
#include "server/turn/chat_turn.h"
#include "server/writers/chat_writer.h"

namespace slipstream {
namespace {

Prepared prepare_chat(ServedModel& model, HttpExchange& exchange, Json& body,
                      const Client& client) {
  if (const auto checked = check_chat(model, body); !checked) {
    return std::unexpected(checked.error());
  }
  ApiResult<ChatRequest> request = read_chat_request(body);
  if (!request) return std::unexpected(request.error());
  auto writer = std::make_unique<ChatWriter>(model, request->options);
  const TurnAnswer::Form form(request->options);
  ApiResult<std::unique_ptr<Turn>> turn = begin_chat(model, exchange, std::move(*request), client);
  if (!turn) return std::unexpected(turn.error());
  return std::make_unique<TurnAnswer>(std::move(*turn), std::move(writer), form);
}

ApiResult<bool> streams_chat(Json& body, const Client& /*client*/) {
  const ApiResult<ChatRequest> request = read_chat_request(body);
  if (!request) return std::unexpected(request.error());
  return request->options.streams;
}

std::unique_ptr<TurnWriter> early_chat_writer(const ServedModel& model) {
  return std::make_unique<ChatWriter>(model, GenerationOptions{});
}

}  // namespace

void add_chat_routes(RouteTable& table, const RouteParts& parts) {
  table.add(model_route("/v1/chat/completions", prepare_chat, parts,
                        {.is_asked_for = streams_chat, .early_writer = early_chat_writer}));
}

}  // namespace slipstream
