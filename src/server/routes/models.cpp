#include "server/routes/models.h"

#include "server/json.h"

namespace slipstream {

namespace asio = boost::asio;

namespace {

Json describe_model(const ModelPool::Status& model, std::time_t started) {
  Json json = {{"id", model.name},
               {"object", "model"},
               {"created", started},
               {"owned_by", "slipstream"},
               {"loaded", model.loaded != nullptr}};
  if (model.loaded) json["max_model_len"] = model.loaded->engine->n_context();
  return json;
}

}  // namespace

asio::awaitable<ApiResult<void>> answer_models(ModelPool& models, std::time_t started,
                                               HttpExchange& exchange) {
  const ApiResult<std::vector<ModelPool::Status>> all = co_await models.list_all();
  if (!all) co_return std::unexpected(all.error());
  Json data = Json::array();
  for (const ModelPool::Status& model : *all) data.push_back(describe_model(model, started));
  (void)co_await exchange.reply({.body = dump({{"object", "list"}, {"data", std::move(data)}})});
  co_return ApiResult<void>();
}

asio::awaitable<ApiResult<void>> answer_one_model(ModelPool& models, std::string_view name,
                                                  std::time_t started, HttpExchange& exchange) {
  const ApiResult<ModelPool::Status> model = co_await models.status(std::string(name));
  if (!model) co_return std::unexpected(model.error());
  (void)co_await exchange.reply({.body = dump(describe_model(*model, started))});
  co_return ApiResult<void>();
}

}  // namespace slipstream
