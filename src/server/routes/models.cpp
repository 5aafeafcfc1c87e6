// GET /v1/models and GET /v1/models/NAME: the models that a request may name.
#include <string>
#include <utility>
#include <vector>

#include "server/http/target.h"
#include "server/json.h"
#include "server/routes/routes.h"

namespace slipstream {

namespace {

constexpr std::string_view kOneModel = "/v1/models/";  // followed by a name

// "created" is the time when the server started, because the model's own time is not known.
Json describe_model(const ModelPool::Status& model, std::time_t started) {
  Json json = {{"id", model.name},
               {"object", "model"},
               {"created", started},
               {"owned_by", "slipstream"},
               {"loaded", model.loaded != nullptr}};
  if (model.loaded) json["max_model_len"] = model.loaded->n_context();
  return json;
}

// Models of the library that are not loaded are listed, too: a request may name them.
RouteAnswer answer_models(const RouteParts& parts, HttpExchange& exchange) {
  const ApiResult<std::vector<ModelPool::Status>> all = co_await parts.models.list_all();
  if (!all) co_return std::unexpected(all.error());
  Json data = Json::array();
  for (const ModelPool::Status& model : *all) {
    data.push_back(describe_model(model, parts.started));
  }
  (void)co_await exchange.reply({.body = dump({{"object", "list"}, {"data", std::move(data)}})});
  co_return ApiResult<void>();
}

RouteAnswer answer_one_model(const RouteParts& parts, HttpExchange& exchange) {
  const ApiResult<ModelPool::Status> model =
      co_await parts.models.status(without_percents(exchange.path().substr(kOneModel.size())));
  if (!model) co_return std::unexpected(model.error());
  (void)co_await exchange.reply({.body = dump(describe_model(*model, parts.started))});
  co_return ApiResult<void>();
}

}  // namespace

void add_model_routes(RouteTable& table, const RouteParts& parts) {
  namespace http = boost::beast::http;
  table.add({.method = http::verb::get,
             .path = "/v1/models",
             .answer = [&parts](HttpExchange& exchange,
                                const Client&) { return answer_models(parts, exchange); },
             .answers_to_the_end = true});
  table.add({.method = http::verb::get,
             .path = kOneModel,
             .answer = [&parts](HttpExchange& exchange,
                                const Client&) { return answer_one_model(parts, exchange); },
             .answers_to_the_end = true});
}

}  // namespace slipstream
