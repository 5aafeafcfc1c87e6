// POST /v1/completions.
#include <memory>
#include <utility>
#include <vector>

#include "server/api/completion_request.h"
#include "server/routes/model_route.h"
#include "server/routes/routes.h"
#include "server/routes/turn_answer.h"
#include "server/turn/completion_turn.h"
#include "server/writers/completion_writer.h"

namespace slipstream {
namespace {

Prepared prepare_completion(ServedModel& model, HttpExchange& exchange, Json& body,
                            const Client& client) {
  if (const auto checked = check_completion(model); !checked) {
    return std::unexpected(checked.error());
  }
  ApiResult<CompletionRequest> request = read_completion_request(body);
  if (!request) return std::unexpected(request.error());
  ApiResult<std::vector<std::vector<Token>>> prompts = take_prompts(model, *request);
  if (!prompts) return std::unexpected(prompts.error());
  ApiResult<std::unique_ptr<Turn>> turn =
      begin_completion(model, exchange, *request, *prompts, client);
  if (!turn) return std::unexpected(turn.error());
  auto writer = std::make_unique<CompletionWriter>(model, *request, std::move(*prompts));
  return std::make_unique<TurnAnswer>(std::move(*turn), std::move(writer),
                                      TurnAnswer::Form(request->options));
}

ApiResult<bool> streams_completion(Json& body, const Client& /*client*/) {
  const ApiResult<CompletionRequest> request = read_completion_request(body);
  if (!request) return std::unexpected(request.error());
  return request->options.streams;
}

std::unique_ptr<TurnWriter> early_completion_writer(const ServedModel& model) {
  return std::make_unique<CompletionWriter>(model, CompletionRequest{},
                                            CompletionWriter::Prompts{});
}

}  // namespace

void add_completion_routes(RouteTable& table, const RouteParts& parts) {
  table.add(
      model_route("/v1/completions", prepare_completion, parts,
                  {.is_asked_for = streams_completion, .early_writer = early_completion_writer}));
}

}  // namespace slipstream
