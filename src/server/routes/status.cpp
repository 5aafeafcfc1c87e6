// GET /health, /ready and /metrics, for operators.
#include <string>
#include <utility>
#include <vector>

#include "server/routes/routes.h"

namespace slipstream {
namespace {

RouteAnswer answer_health(HttpExchange& exchange) {
  (void)co_await exchange.reply({.body = R"({"status":"ok"})"});
  co_return ApiResult<void>();
}

RouteAnswer answer_ready(const ModelPool& models, HttpExchange& exchange) {
  if (!models.is_ready().value_or(false)) {
    co_return std::unexpected(
        ApiError{.status = 503, .message = "The model is being loaded: try again soon"});
  }
  (void)co_await exchange.reply({.body = R"({"status":"ready"})"});
  co_return ApiResult<void>();
}

RouteAnswer answer_metrics(const RouteParts& parts, HttpExchange& exchange) {
  std::vector<Metrics::EngineReading> engines;
  std::vector<Metrics::ReaderReading> readers;
  for (const ModelPool::Status& model : parts.models.list()) {
    if (!model.loaded) continue;
    if (model.loaded->reader) {
      readers.push_back(
          {.model_name = model.name, .stats = model.loaded->reader->worker().stats()});
    }
    if (!model.loaded->engine) continue;
    engines.push_back({.model_name = model.name,
                       .kv_scheme = model.loaded->kv_scheme,
                       .kv_bytes = model.loaded->kv_bytes,
                       .kv_f16_bytes = model.loaded->kv_f16_bytes,
                       .stats = model.loaded->engine->stats()});
  }
  (void)co_await exchange.reply(
      {.content_type = "text/plain; version=0.0.4; charset=utf-8",
       .body = parts.metrics.text(engines, readers, read_expert_counters(),
                                  read_kv_memory_counters())});
  co_return ApiResult<void>();
}

}  // namespace

void add_status_routes(RouteTable& table, const RouteParts& parts) {
  namespace http = boost::beast::http;
  table.add(
      {.method = http::verb::get,
       .path = "/health",
       .answer = [](HttpExchange& exchange, const Client&) { return answer_health(exchange); },
       .is_open = true,
       .answers_to_the_end = true});
  table.add({.method = http::verb::get,
             .path = "/ready",
             .answer = [&parts](HttpExchange& exchange, const Client&) {
               return answer_ready(parts.models, exchange);
             }});
  table.add({.method = http::verb::get,
             .path = "/metrics",
             .answer = [&parts](HttpExchange& exchange,
                                const Client&) { return answer_metrics(parts, exchange); },
             .answers_to_the_end = true});
}

}  // namespace slipstream
