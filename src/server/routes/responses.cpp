// POST /v1/responses, and GET and DELETE of stored responses.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "server/api/responses_error.h"
#include "server/api/responses_request.h"
#include "server/bounded_json.h"
#include "server/http/target.h"
#include "server/routes/model_route.h"
#include "server/routes/routes.h"
#include "server/routes/turn_answer.h"
#include "server/store/input_items.h"
#include "server/store/stored_past.h"
#include "server/turn/chat_prompt.h"
#include "server/turn/chat_turn.h"
#include "server/writers/responses_writer.h"

namespace slipstream {
namespace {

constexpr std::string_view kOneResponse = "/v1/responses/";  // followed by an id
constexpr std::string_view kInputItems = "/input_items";

// Runs before the client gets the end of the answer, so that the client can continue from it at
// once. If the disk is full, the client still gets its answer.
void store_response(ResponseStore& store, const ResponsesWriter& writer, Salt salt,
                    std::string items) {
  if (writer.response().empty()) return;
  const Result<void> stored =
      store.put(writer.id(), salt, {.response = writer.response(), .items = std::move(items)});
  if (!stored) {
    log::warn("responses.store", {{"id", writer.id()}, {"error", stored.error().message}});
  }
}

// A request keeps its echo and its items until it is answered. The prompt bounds most of that. This
// bounds the rest, such as metadata, so that waiting requests cannot fill the memory.
ApiResult<void> check_kept(const ServedModel& model, const ResponsesRequest& request) {
  constexpr std::size_t kAlways = std::size_t{256} << 10;
  // Text has 4 to 10 bytes per token; some is kept twice. A conversation that may be longer than its
  // window is not kept at any length: each request in progress has one.
  const std::size_t n_per_token = model.rescue == nullptr ? 32 : 128;
  const std::size_t n = request.echo.size() + request.items.size();
  const std::size_t n_max =
      kAlways + n_per_token * static_cast<std::size_t>(model.engine->n_context());
  if (n <= n_max) return {};
  return std::unexpected(ApiError{
      .message = format_text("The conversation and what belongs to it take {} bytes, more "
                             "than the {} that a context of {} tokens takes: leave out old "
                             "items, tools or metadata",
                             n, n_max, model.engine->n_context()),
      .param = "input",
      .code = "context_length_exceeded"});
}

Prepared prepare_response(const RouteParts& parts, ServedModel& model, HttpExchange& exchange,
                          Json& body, const Client& client) {
  if (const auto checked = check_chat(model, body, {"input", "tools"}); !checked) {
    return std::unexpected(in_words_of_responses(checked.error(), {}));
  }
  StoredPast past(parts.responses, client.salt);
  ApiResult<ResponsesRequest> request = read_responses_request(body, past);
  if (!request) return std::unexpected(request.error());
  const FieldSize sizes[] = {{"input", n_values(request->chat.messages)},
                             {"tools", n_values(request->chat.tools)}};
  if (const auto checked = check_values(model, sizes); !checked) {
    return std::unexpected(checked.error());
  }
  if (const auto checked = check_kept(model, *request); !checked) {
    return std::unexpected(checked.error());
  }
  auto writer = std::make_unique<ResponsesWriter>(ResponsesWriter::Options{
      .model = model.name, .echo = std::move(request->echo), .spaces = std::move(request->spaces)});
  std::function<void()> at_end;
  if (!request->items.empty()) {
    at_end = [&store = parts.responses, &writer = *writer, salt = client.salt,
              items = std::move(request->items)]() mutable {
      store_response(store, writer, salt, std::move(items));
    };
  }
  const TurnAnswer::Form form(request->chat.options);
  ApiResult<std::unique_ptr<Turn>> turn =
      begin_chat(model, exchange, std::move(request->chat), client);
  if (!turn) {
    return std::unexpected(in_words_of_responses(turn.error(), request->tool_paths));
  }
  return std::make_unique<TurnAnswer>(std::move(*turn), std::move(writer), form, std::move(at_end));
}

ApiResult<bool> streams_response(const RouteParts& parts, Json& body, const Client& client) {
  StoredPast past(parts.responses, client.salt);
  const ApiResult<ResponsesRequest> request = read_responses_request(body, past);
  if (!request) return std::unexpected(request.error());
  return request->chat.options.streams;
}

std::unique_ptr<TurnWriter> early_response_writer(const ServedModel& model) {
  return std::make_unique<ResponsesWriter>(ResponsesWriter::Options{.model = model.name});
}

ApiError no_response(const Error& error, const std::string& id) {
  if (error.code != Code::kNotFound) return to_api_error(error);
  return {.status = 404, .message = format_text("Response with id '{}' not found.", id)};
}

ApiResult<std::string> show_response(ResponseStore& store, const HttpExchange& exchange,
                                     Salt salt) {
  std::string id = without_percents(exchange.path().substr(kOneResponse.size()));
  const bool wants_items = id.ends_with(kInputItems);
  if (wants_items) id.resize(id.size() - kInputItems.size());
  const std::string_view target = exchange.request().target();
  if (query_value(target, "stream") == "true") {
    return refuse("stream", "'stream' is not supported: an answer that is stored has ended");
  }
  Result<StoredResponse> stored = store.get(id, salt);
  if (!stored) return std::unexpected(no_response(stored.error(), id));
  if (wants_items) return input_items_page(id, *stored, target);
  return std::move(stored->response);
}

ApiResult<std::string> delete_response(ResponseStore& store, const HttpExchange& exchange,
                                       Salt salt) {
  const std::string id = without_percents(exchange.path().substr(kOneResponse.size()));
  if (const Result<void> removed = store.remove(id, salt); !removed) {
    return std::unexpected(no_response(removed.error(), id));
  }
  return dump({{"id", id}, {"object", "response"}, {"deleted", true}});
}

// The work runs on a worker, because it waits for the disk.
using WithStore = ApiResult<std::string> (*)(ResponseStore&, const HttpExchange&, Salt);
RouteAnswer answer_with_store(const RouteParts& parts, WithStore work, HttpExchange& exchange,
                              const Client& client) {
  ApiResult<std::string> body = co_await parts.workers.run(
      exchange, [&] { return work(parts.responses, exchange, client.salt); });
  if (!body) co_return std::unexpected(body.error());
  (void)co_await exchange.reply({.body = std::move(*body)});
  co_return ApiResult<void>();
}

}  // namespace

void add_response_routes(RouteTable& table, const RouteParts& parts) {
  using boost::beast::http::verb;
  const auto prepare = [&parts](ServedModel& model, HttpExchange& exchange, Json& body,
                                const Client& client) {
    return prepare_response(parts, model, exchange, body, client);
  };
  const auto streams = [&parts](Json& body, const Client& client) {
    return streams_response(parts, body, client);
  };
  table.add(model_route("/v1/responses", prepare, parts,
                        {.is_asked_for = streams, .early_writer = early_response_writer}));
  const auto add = [&](verb method, WithStore work) {
    table.add({.method = method,
               .path = kOneResponse,
               .answer = [&parts, work](HttpExchange& exchange, const Client& client) {
                 return answer_with_store(parts, work, exchange, client);
               }});
  };
  add(verb::get, show_response);
  add(verb::delete_, delete_response);
}

}  // namespace slipstream
