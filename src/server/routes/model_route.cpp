#include "server/routes/model_route.h"

#include <malloc.h>

#include <memory>
#include <string>
#include <utility>

#include "base/format.h"
#include "server/api/json_fields.h"
#include "server/bounded_json.h"

namespace slipstream {
namespace {

constexpr std::size_t kModelNameBytesMax = 1024;

struct ModelRoute {
  Prepare prepare;
  StreamedAnswers streams;
  bool needs_engine;
};

struct Asked {
  std::string model_name;
  ModelPool::Held model;                   // null: it must be loaded first
  bool wants_stream = false;               // set only if the model must be loaded first
  std::unique_ptr<PreparedAnswer> answer;  // must be the last member: it uses the model
};

Prepared refuse_to_write(const ServedModel& model) {
  const bool ranks = model.reader->pairs() != nullptr;
  return refuse("model", format_text("'{}' only reads texts: ask it {}, or name another model",
                                     model.name, ranks ? "/v1/rerank" : "/v1/embeddings"));
}

// Parsed JSON takes many times the memory of its text. It exists only within this function, so at
// most one body per worker is parsed at a time.
ApiResult<Asked> work_on_body(const RouteParts& parts, const ModelRoute& route,
                              ModelPool::Held model, HttpExchange& exchange, const Client& client) {
  ApiResult<Json> body = parse_json(exchange.request().body());
  if (!body) return std::unexpected(body.error());
  JsonFields fields(*body);
  std::string name = fields.text("model").value_or("");
  if (fields.error()) return std::unexpected(*fields.error());
  if (name.size() > kModelNameBytesMax) {
    return std::unexpected(
        ApiError{.status = 404,
                 .message = format_text("No model has a name of {} bytes", name.size()),
                 .param = "model",
                 .code = "model_not_found"});
  }
  if (!model) model = parts.models.find_loaded(name);
  if (!model) {
    const ApiResult<bool> wants_stream =
        route.streams.is_asked_for ? route.streams.is_asked_for(*body, client) : false;
    destroy(*body);
    if (!wants_stream) return std::unexpected(wants_stream.error());
    return Asked{
        .model_name = std::move(name), .model = {}, .wants_stream = *wants_stream, .answer = {}};
  }
  Prepared answer = route.needs_engine && !model->engine
                        ? refuse_to_write(*model)
                        : route.prepare(*model, exchange, *body, client);
  destroy(*body);
  if (!answer) return std::unexpected(answer.error());
  return Asked{.model_name = {}, .model = std::move(model), .answer = std::move(*answer)};
}

// Sends the error as the end of a stream that has begun.
RouteAnswer end_stream(HttpExchange& exchange, TurnWriter& writer, const ApiError& error) {
  std::string events = writer.write(error);
  events += writer.end({});
  if (co_await exchange.send(events)) (void)co_await exchange.end_stream();
  co_return ApiResult<void>();
}

// work: makes the answer from the body and a model.
template <typename Work>
RouteAnswer stream_while_loading(const RouteParts& parts, const ModelRoute& route,
                                 HttpExchange& exchange, std::string model_name, Work work) {
  const ServedModel named{.name = std::move(model_name), .engine = nullptr};
  const std::unique_ptr<TurnWriter> writer = route.streams.early_writer(named);
  if (!co_await exchange.begin_stream(writer->head())) co_return ApiResult<void>();
  const std::string first = writer->begin_early();
  if (!co_await exchange.send(first)) co_return ApiResult<void>();
  const auto ping = [&]() -> boost::asio::awaitable<bool> {
    const std::string event = writer->ping();
    co_return co_await exchange.send(event);
  };
  const ApiResult<ModelPool::Held> model = co_await parts.models.get(named.name, exchange, ping);
  if (!model) co_return co_await end_stream(exchange, *writer, model.error());
  ApiResult<Asked> asked = co_await parts.workers.go_on(exchange, [&] { return work(*model); });
  if (!asked) co_return co_await end_stream(exchange, *writer, asked.error());
  asked->answer->go_on_from(writer->start());
  co_return co_await asked->answer->send(exchange, parts.workers);
}

// `route` belongs to the route table, which outlives the answer.
RouteAnswer answer_with_model(const RouteParts& parts, const ModelRoute& route,
                              HttpExchange& exchange, const Client& client) {
  if (const auto problem = co_await exchange.read_body()) {
    co_return std::unexpected(ApiError{.status = problem->status, .message = problem->message});
  }
  const auto work = [&](const ModelPool::Held& model) {
    ApiResult<Asked> result = work_on_body(parts, route, model, exchange, client);
    // Otherwise each worker's heap would keep the memory of its largest request.
    constexpr std::size_t kLarge = std::size_t{1} << 19;
    if (exchange.request().body().size() >= kLarge) ::malloc_trim(0);
    return result;
  };
  ApiResult<Asked> asked = co_await parts.workers.run(exchange, [&] { return work(nullptr); });
  if (asked && !asked->answer) {
    const ApiResult<std::string> name = co_await parts.models.resolve(asked->model_name);
    if (!name) co_return std::unexpected(name.error());
    // The model may be loaded already, if the request used another name for it.
    if (asked->wants_stream && !parts.models.find_loaded(*name)) {
      co_return co_await stream_while_loading(parts, route, exchange, *name, work);
    }
    const ApiResult<ModelPool::Held> model = co_await parts.models.get(*name, exchange);
    if (!model) co_return std::unexpected(model.error());
    asked = co_await parts.workers.go_on(exchange, [&] { return work(*model); });
  }
  if (!asked) co_return std::unexpected(asked.error());
  co_return co_await asked->answer->send(exchange, parts.workers);
}

Route make_route(std::string_view path, ModelRoute route, const RouteParts& parts) {
  return {
      .method = boost::beast::http::verb::post,
      .path = path,
      .answer = [&parts, route = std::move(route)](HttpExchange& exchange, const Client& client) {
        return answer_with_model(parts, route, exchange, client);
      }};
}

}  // namespace

Route model_route(std::string_view path, Prepare prepare, const RouteParts& parts,
                  StreamedAnswers streams) {
  return make_route(
      path, {.prepare = std::move(prepare), .streams = std::move(streams), .needs_engine = true},
      parts);
}

Route any_model_route(std::string_view path, Prepare prepare, const RouteParts& parts) {
  return make_route(path, {.prepare = std::move(prepare), .streams = {}, .needs_engine = false},
                    parts);
}

}  // namespace slipstream
