// POST /infill: llama-server's route for editors, which fills the place of a cursor.
#include <memory>
#include <utility>
#include <vector>

#include "server/api/infill_request.h"
#include "server/routes/model_route.h"
#include "server/routes/routes.h"
#include "server/routes/turn_answer.h"
#include "server/turn/completion_turn.h"
#include "server/turn/fill_prompt.h"
#include "server/writers/infill_writer.h"

namespace slipstream {
namespace {

Prepared prepare_infill(ServedModel& model, HttpExchange& exchange, Json& body,
                        const Client& client) {
  if (const auto checked = check_completion(model); !checked) {
    return std::unexpected(checked.error());
  }
  ApiResult<InfillRequest> request = read_infill_request(body);
  if (!request) return std::unexpected(request.error());
  const int n_after = request->options.max_tokens.value_or(0);
  ApiResult<FillPrompt> prompt = fill_prompt(model, request->fill, n_after);
  if (!prompt) return std::unexpected(prompt.error());
  const CompletionRequest completion{.options = request->options, .prompts = {}};
  const std::vector<std::vector<Token>> prompts{std::move(prompt->tokens)};
  ApiResult<std::unique_ptr<Turn>> turn =
      begin_completion(model, exchange, completion, prompts, client);
  if (!turn) return std::unexpected(turn.error());
  auto writer =
      std::make_unique<InfillWriter>(InfillWriter::Options{.model = model.name,
                                                           .n_context = model.engine->n_context(),
                                                           .n_choices = request->options.n,
                                                           .n_dropped = prompt->n_dropped,
                                                           .only_reads = request->only_reads});
  return std::make_unique<TurnAnswer>(std::move(*turn), std::move(writer),
                                      TurnAnswer::Form(request->options));
}

ApiResult<bool> streams_infill(Json& body, const Client& /*client*/) {
  const ApiResult<InfillRequest> request = read_infill_request(body);
  if (!request) return std::unexpected(request.error());
  return request->options.streams;
}

std::unique_ptr<TurnWriter> early_infill_writer(const ServedModel& model) {
  return std::make_unique<InfillWriter>(InfillWriter::Options{.model = model.name});
}

}  // namespace

void add_infill_routes(RouteTable& table, const RouteParts& parts) {
  table.add(model_route("/infill", prepare_infill, parts,
                        {.is_asked_for = streams_infill, .early_writer = early_infill_writer}));
}

}  // namespace slipstream
