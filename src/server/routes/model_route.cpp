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

struct Asked {
  std::string model_name;
  ModelPool::Held model;                   // null: it has to be loaded first
  std::unique_ptr<PreparedAnswer> answer;  // last: it uses the model
};

// JSON takes many times the memory of its text, and only as much of it as there are workers is ever
// there.
ApiResult<Asked> work_on_body(const RouteParts& parts, const Prepare& prepare,
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
  if (!model) return Asked{.model_name = std::move(name), .model = {}, .answer = {}};
  Prepared answer = prepare(*model, exchange, *body, client);
  destroy(*body);
  if (!answer) return std::unexpected(answer.error());
  return Asked{.model_name = {}, .model = std::move(model), .answer = std::move(*answer)};
}

// `prepare` is the route's, which outlives the answer.
RouteAnswer answer_with_model(const RouteParts& parts, const Prepare& prepare,
                              HttpExchange& exchange, const Client& client) {
  if (const auto problem = co_await exchange.read_body()) {
    co_return std::unexpected(ApiError{.status = problem->status, .message = problem->message});
  }
  const auto work = [&](const ModelPool::Held& model) {
    ApiResult<Asked> result = work_on_body(parts, prepare, model, exchange, client);
    // The heap of each worker would keep what its largest request took.
    constexpr std::size_t kLarge = std::size_t{1} << 19;
    if (exchange.request().body().size() >= kLarge) ::malloc_trim(0);
    return result;
  };
  ApiResult<Asked> asked = co_await parts.workers.run(exchange, [&] { return work(nullptr); });
  if (asked && !asked->answer) {
    const ApiResult<ModelPool::Held> model = co_await parts.models.get(asked->model_name, exchange);
    if (!model) co_return std::unexpected(model.error());
    asked = co_await parts.workers.go_on(exchange, [&] { return work(*model); });
  }
  if (!asked) co_return std::unexpected(asked.error());
  co_return co_await asked->answer->send(exchange, parts.workers);
}

}  // namespace

Route model_route(std::string_view path, Prepare prepare, const RouteParts& parts) {
  return {.method = boost::beast::http::verb::post,
          .path = path,
          .answer = [&parts, prepare = std::move(prepare)](HttpExchange& exchange,
                                                           const Client& client) {
            return answer_with_model(parts, prepare, exchange, client);
          }};
}

}  // namespace slipstream
