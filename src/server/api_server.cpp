#include "server/api_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <format>
#include <utility>

#include "server/api_keys.h"
#include "server/metrics.h"
#include "server/routes/chat.h"
#include "server/routes/completions.h"
#include "server/routes/embeddings.h"
#include "server/routes/tokens.h"
#include "server/sse.h"

namespace slipstream {

namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {

std::string error_body(int status, std::string_view message) {
  return to_json(ApiError{.status = status, .message = std::string(message)});
}

}  // namespace

class ApiServer::Impl {
 public:
  explicit Impl(const ApiServerOptions& options) : options_(options), keys_(options.api_keys) {}

  ~Impl() {
    if (http_) http_->stop();  // handlers use the model
    model_.reset();            // its last events are for handlers that are no more
  }

  Result<void> start() {
    auto listening = HttpServer::listen(
        options_.http, [this](HttpExchange& exchange) { return answer(exchange); }, error_body);
    if (!listening) return std::unexpected(listening.error());
    http_ = std::move(*listening);
    return {};
  }

  void set_model(std::unique_ptr<ServedModel> model) {
    model_ = std::move(model);
    model_->metrics = &metrics_.requests_of(model_->name);
    ready_ = model_.get();
  }
  [[nodiscard]] std::string address() const { return http_->address(); }
  bool drain(std::chrono::milliseconds time_max) {
    is_draining_ = true;
    return http_->drain(time_max);
  }

 private:
  using Answer = asio::awaitable<ApiResult<void>>;
  struct Route {
    http::verb method;
    std::string_view path;
    Answer (Impl::*answer)(HttpExchange&, const Client&);
    bool is_open = false;  // to those without a key
  };

  static const Route* find_route(std::string_view path) {
    static constexpr std::array kRoutes = {
        Route{http::verb::get, "/health", &Impl::health, true},
        Route{http::verb::get, "/ready", &Impl::ready},
        Route{http::verb::get, "/metrics", &Impl::metrics},
        Route{http::verb::get, "/v1/models", &Impl::models},
        Route{http::verb::post, "/v1/chat/completions", &Impl::chat},
        Route{http::verb::post, "/v1/completions", &Impl::completions},
        Route{http::verb::post, "/v1/embeddings", &Impl::embeddings},
        Route{http::verb::post, "/tokenize", &Impl::tokenize},
        Route{http::verb::post, "/detokenize", &Impl::detokenize},
    };
    const auto* route = std::ranges::find(kRoutes, path, &Route::path);
    return route == kRoutes.end() ? nullptr : route;
  }

  asio::awaitable<void> answer(HttpExchange& exchange) {
    const ApiResult<void> answered = co_await dispatch(exchange);
    if (!answered && exchange.status() == 0) {
      HttpReply reply{.status = answered.error().status, .body = to_json(answered.error())};
      if (reply.status == 429 || reply.status == 503) {
        reply.headers.emplace_back("Retry-After", "1");
      }
      (void)co_await exchange.reply(std::move(reply));
    }
    metrics_.count_http(find_route(exchange.path()) == nullptr ? "other" : exchange.path(),
                        exchange.status());
  }

  Answer dispatch(HttpExchange& exchange) {
    const std::string_view path = exchange.path();
    const Route* route = find_route(path);
    // Before anything is said about what there is.
    ApiResult<Client> client = keys_.check(exchange.request()[http::field::authorization]);
    if (!client && (route == nullptr || !route->is_open)) {
      co_return std::unexpected(client.error());
    }
    if (route == nullptr) {
      co_return std::unexpected(
          ApiError{.status = 404, .message = std::format("There is no {}", path)});
    }
    if (exchange.request().method() != route->method) {
      co_return std::unexpected(ApiError{
          .status = 405,
          .message =
              std::format("{} wants {}", path, std::string_view(http::to_string(route->method)))});
    }
    co_return co_await (this->*route->answer)(exchange, client.value_or(Client{}));
  }

  Answer health(HttpExchange& exchange, const Client& /*client*/) {
    (void)co_await exchange.reply({.body = R"({"status":"ok"})"});
    co_return ApiResult<void>();
  }

  Answer ready(HttpExchange& exchange, const Client& /*client*/) {
    if (const auto model = ready_model(); !model) co_return std::unexpected(model.error());
    (void)co_await exchange.reply({.body = R"({"status":"ready"})"});
    co_return ApiResult<void>();
  }

  Answer models(HttpExchange& exchange, const Client& /*client*/) {
    Json data = Json::array();
    if (const ServedModel* model = ready_) {
      data.push_back({{"id", model->name},
                      {"object", "model"},
                      {"created", model->created},
                      {"owned_by", "slipstream"},
                      {"max_model_len", model->engine->n_context()}});
    }
    (void)co_await exchange.reply({.body = dump({{"object", "list"}, {"data", std::move(data)}})});
    co_return ApiResult<void>();
  }

  Answer metrics(HttpExchange& exchange, const Client& /*client*/) {
    std::vector<Metrics::EngineReading> engines;
    if (const ServedModel* model = ready_) {
      engines.push_back({.model_name = model->name,
                         .kv_scheme = model->kv_scheme,
                         .kv_bytes = model->kv_bytes,
                         .stats = model->engine->stats()});
    }
    (void)co_await exchange.reply({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                                   .body = metrics_.text(engines)});
    co_return ApiResult<void>();
  }

  using BodyRoute = Answer (*)(ServedModel&, HttpExchange&, const Json&, const Client&);
  Answer with_body(HttpExchange& exchange, const Client& client, BodyRoute route) {
    const ApiResult<ServedModel*> model = ready_model();
    if (!model) co_return std::unexpected(model.error());
    const ApiResult<Json> body = parse_json(exchange.request().body(), options_.http.limits);
    if (!body) co_return std::unexpected(body.error());
    if (const auto known = check_model_name(*body, **model); !known) co_return known;
    co_return co_await route(**model, exchange, *body, client);
  }

  Answer chat(HttpExchange& exchange, const Client& client) {
    return with_body(exchange, client, answer_chat);
  }
  Answer completions(HttpExchange& exchange, const Client& client) {
    return with_body(exchange, client, answer_completion);
  }
  Answer embeddings(HttpExchange& exchange, const Client& client) {
    return with_body(exchange, client, answer_embeddings);
  }
  Answer tokenize(HttpExchange& exchange, const Client& client) {
    return with_body(exchange, client, answer_tokenize);
  }
  Answer detokenize(HttpExchange& exchange, const Client& client) {
    return with_body(exchange, client, answer_detokenize);
  }

  [[nodiscard]] ApiResult<ServedModel*> ready_model() const {
    ServedModel* model = ready_;
    if (is_draining_ || model == nullptr) {
      return std::unexpected(
          ApiError{.status = 503,
                   .message = is_draining_ ? "The server is about to end: ask another one"
                                           : "The model is being loaded: try again soon"});
    }
    return model;
  }

  static ApiResult<void> check_model_name(const Json& body, const ServedModel& model) {
    JsonFields fields(body);
    const std::string name = fields.text("model").value_or("");
    if (fields.error()) return std::unexpected(*fields.error());
    if (name.empty() || name == model.name) return {};
    return std::unexpected(ApiError{
        .status = 404,
        .message = std::format("The model '{}' does not exist: there is '{}'", name, model.name),
        .param = "model",
        .code = "model_not_found"});
  }

  const ApiServerOptions options_;
  const ApiKeys keys_;
  std::atomic<bool> is_draining_ = false;
  Metrics metrics_;
  std::unique_ptr<ServedModel> model_;
  std::atomic<ServedModel*> ready_ = nullptr;
  std::unique_ptr<HttpServer> http_;
};

ApiServer::ApiServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ApiServer::~ApiServer() = default;

Result<std::unique_ptr<ApiServer>> ApiServer::start(const ApiServerOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  if (const Result<void> started = impl->start(); !started) {
    return std::unexpected(started.error());
  }
  return std::unique_ptr<ApiServer>(new ApiServer(std::move(impl)));
}

void ApiServer::set_model(std::unique_ptr<ServedModel> model) {
  impl_->set_model(std::move(model));
}
std::string ApiServer::address() const { return impl_->address(); }
bool ApiServer::drain(std::chrono::milliseconds time_max) { return impl_->drain(time_max); }

}  // namespace slipstream
