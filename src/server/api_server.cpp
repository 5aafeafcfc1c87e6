#include "server/api_server.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <ctime>
#include <utility>

#include "base/format.h"
#include "server/api_keys.h"
#include "server/bounded_json.h"
#include "server/browser_guard.h"
#include "server/http/target.h"
#include "server/metrics.h"
#include "server/routes/chat.h"
#include "server/routes/completions.h"
#include "server/routes/embeddings.h"
#include "server/routes/library.h"
#include "server/routes/models.h"
#include "server/routes/tokens.h"
#include "server/routes/web_app.h"
#include "server/worker_pool.h"

namespace slipstream {

namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {

std::string error_body(int status, std::string_view message) {
  return to_json(ApiError{.status = status, .message = std::string(message)});
}

constexpr std::string_view kOneModel = "/v1/models/";  // and its name
constexpr std::size_t kModelNameBytesMax = 1024;

BrowserGuardOptions guard_options(const ApiServerOptions& options) {
  BrowserGuardOptions guard = options.browsers;
  boost::system::error_code error;
  const asio::ip::address address = asio::ip::make_address(options.http.host, error);
  guard.is_local = !error && address.is_loopback();
  if (guard.is_local) return guard;
  const bool has_keys = !options.api_keys.empty() || !options.keys_file.empty();
  guard.answers_to_all = has_keys && guard.hosts.empty();
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0') {
    guard.hosts.emplace_back(name.data());
    guard.hosts.push_back(guard.hosts.back() + ".local");
  }
  return guard;
}

}  // namespace

class ApiServer::Impl {
 public:
  explicit Impl(const ApiServerOptions& options)
      : options_(options),
        keys_(options.api_keys, metrics_),
        guard_(guard_options(options)),
        workers_(options.n_workers, options.n_waiting_max) {
    metrics_.count_restarts(options.n_restarts);
  }

  ~Impl() {
    if (routes_) routes_->stop();  // handlers wait for what they asked of it
    if (http_) http_->stop();      // handlers use the models
    workers_.join();
    routes_.reset();
    pool_.reset();  // their last events are for handlers that are no more
  }

  Result<int> reload_keys() {
    if (options_.keys_file.empty()) return 0;
    const Result<std::vector<ClientKey>> keys = read_keys_file(options_.keys_file);
    if (!keys) return std::unexpected(keys.error());
    keys_.set_file_keys(*keys);
    return static_cast<int>(keys->size());
  }

  Result<void> start() {
    auto listening = HttpServer::listen(
        options_.http, [this](HttpExchange& exchange) { return answer(exchange); }, error_body);
    if (!listening) return std::unexpected(listening.error());
    http_ = std::move(*listening);
    return {};
  }

  void set_models(ModelPoolOptions models) {
    pool_ = std::make_unique<ModelPool>(std::move(models), metrics_);
    if (ModelLibrary* library = pool_->library()) {
      routes_ = std::make_unique<LibraryRoutes>(*pool_, *library);
    }
  }
  [[nodiscard]] Result<bool> is_ready() const { return pool_->is_ready(); }
  [[nodiscard]] std::string address() const { return http_->address(); }
  bool drain(std::chrono::milliseconds time_max) {
    is_draining_ = true;
    if (routes_) routes_->stop();  // a pull goes on the next time; nobody waits for it now
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
        Route{http::verb::get, kOneModel, &Impl::one_model},
        Route{http::verb::post, "/v1/chat/completions", &Impl::chat},
        Route{http::verb::post, "/v1/completions", &Impl::completions},
        Route{http::verb::post, "/v1/embeddings", &Impl::embeddings},
        Route{http::verb::post, "/tokenize", &Impl::tokenize},
        Route{http::verb::post, "/detokenize", &Impl::detokenize},
        Route{http::verb::get, "/slipstream/models", &Impl::installed},
        Route{http::verb::post, "/slipstream/models/load", &Impl::load},
        Route{http::verb::post, "/slipstream/models/unload", &Impl::unload},
        Route{http::verb::get, "/slipstream/hub/search", &Impl::search},
        Route{http::verb::post, "/slipstream/hub/pull", &Impl::pull},
    };
    const bool is_one_model = path.starts_with(kOneModel) && path.size() > kOneModel.size();
    const std::string_view pattern = is_one_model ? kOneModel : path;
    const auto* route = std::ranges::find(kRoutes, pattern, &Route::path);
    return route == kRoutes.end() ? nullptr : route;
  }

  asio::awaitable<void> answer(HttpExchange& exchange) {
    const ApiResult<void> answered = co_await dispatch(exchange);
    if (!answered && exchange.status() == 0 && !exchange.is_gone()) {
      HttpReply reply{.status = answered.error().status,
                      .body = slipstream::to_json(answered.error())};
      if (reply.status == 429 || reply.status == 503) {
        reply.headers.emplace_back("Retry-After", std::to_string(answered.error().retry_after_s));
      }
      (void)co_await exchange.reply(std::move(reply));
    }
    metrics_.count_http(label_of(exchange.path()), exchange.outcome());
  }

  // Few of them: whoever asks for what is not there makes no new ones.
  static std::string_view label_of(std::string_view path) {
    if (const Route* route = find_route(path)) return route->path;
    return find_web_file(path) != nullptr ? "web" : "other";
  }

  Answer dispatch(HttpExchange& exchange) {
    const HttpRequest& request = exchange.request();
    const ApiResult<std::string> origin =
        guard_.check(request[http::field::host], request[http::field::origin]);
    if (!origin) co_return std::unexpected(origin.error());
    if (!origin->empty()) {
      exchange.add_header("Access-Control-Allow-Origin", *origin);
      exchange.add_header("Vary", "Origin");
      if (request.method() == http::verb::options) co_return co_await allow_headers(exchange);
    }
    const std::string_view path = exchange.path();
    // The page in which a user enters the key.
    if (const WebFile* file = find_web_file(path)) co_return co_await web_app(exchange, *file);
    const Route* route = find_route(path);
    // Before anything is said about what there is.
    ApiResult<Client> client = keys_.check(request[http::field::authorization]);
    if (!client && (route == nullptr || !route->is_open)) {
      co_return std::unexpected(client.error());
    }
    if (route == nullptr) {
      co_return std::unexpected(
          ApiError{.status = 404, .message = format_text("There is no {}", path)});
    }
    if (method_of(request) != route->method) {
      co_return std::unexpected(wrong_method(path, route->method));
    }
    if (!client) co_return co_await (this->*route->answer)(exchange, Client{});
    exchange.set_client(client->name);
    if (!client->account || route->method != http::verb::post) {
      co_return co_await (this->*route->answer)(exchange, *client);
    }
    const ApiResult<ClientAccount::Request> counted = client->account->begin();
    if (!counted) co_return std::unexpected(counted.error());
    co_return co_await (this->*route->answer)(exchange, *client);
  }

  // HEAD is GET whose answer has no body.
  static http::verb method_of(const HttpRequest& request) {
    return request.method() == http::verb::head ? http::verb::get : request.method();
  }
  static ApiError wrong_method(std::string_view path, http::verb method) {
    return {.status = 405,
            .message = format_text("{} wants {}", path, std::string_view(http::to_string(method)))};
  }

  static Answer web_app(HttpExchange& exchange, const WebFile& file) {
    if (method_of(exchange.request()) != http::verb::get) {
      co_return std::unexpected(wrong_method(file.path, http::verb::get));
    }
    (void)co_await exchange.reply(web_reply(file, exchange.request()));
    co_return ApiResult<void>();
  }

  // A browser asks before it sends what a page made it send.
  static Answer allow_headers(HttpExchange& exchange) {
    exchange.add_header("Access-Control-Allow-Methods", "GET, POST");
    exchange.add_header("Access-Control-Allow-Headers",
                        "Authorization, Content-Type, X-Request-Id");
    exchange.add_header("Access-Control-Max-Age", "600");
    (void)co_await exchange.reply({.status = 204});
    co_return ApiResult<void>();
  }

  Answer health(HttpExchange& exchange, const Client& /*client*/) {
    (void)co_await exchange.reply({.body = R"({"status":"ok"})"});
    co_return ApiResult<void>();
  }

  Answer ready(HttpExchange& exchange, const Client& /*client*/) {
    if (const auto open = check_open(); !open) co_return std::unexpected(open.error());
    if (!is_ready().value_or(false)) co_return std::unexpected(still_loading());
    (void)co_await exchange.reply({.body = R"({"status":"ready"})"});
    co_return ApiResult<void>();
  }

  Answer models(HttpExchange& exchange, const Client& /*client*/) {
    return answer_models(*pool_, started_, exchange);
  }

  Answer one_model(HttpExchange& exchange, const Client& /*client*/) {
    co_return co_await answer_one_model(
        *pool_, without_percents(exchange.path().substr(kOneModel.size())), started_, exchange);
  }

  Answer metrics(HttpExchange& exchange, const Client& /*client*/) {
    std::vector<Metrics::EngineReading> engines;
    for (const ModelPool::Status& model : pool_->list()) {
      if (!model.loaded) continue;
      engines.push_back({.model_name = model.name,
                         .kv_scheme = model.loaded->kv_scheme,
                         .kv_bytes = model.loaded->kv_bytes,
                         .kv_f16_bytes = model.loaded->kv_f16_bytes,
                         .stats = model.loaded->engine->stats()});
    }
    (void)co_await exchange.reply({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                                   .body = metrics_.text(engines, read_expert_counters())});
    co_return ApiResult<void>();
  }

  using Prepare = Prepared (*)(ServedModel&, HttpExchange&, Json&, const Client&);
  struct Asked {
    std::string model_name;
    ModelPool::Held model;                   // null: it has to be loaded first
    std::unique_ptr<PreparedAnswer> answer;  // last: it uses the model
  };

  // On a worker, as far as it gets without waiting: JSON takes many times the memory of its text,
  // and only as much of it as there are workers is ever there.
  ApiResult<Asked> prepare(HttpExchange& exchange, const Client& client, Prepare route,
                           ModelPool::Held model) const {
    ApiResult<Json> body = parse_json(exchange.request().body(), options_.http.limits);
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
    if (!model) model = pool_->find_loaded(name);
    if (!model) return Asked{.model_name = std::move(name), .model = {}, .answer = {}};
    Prepared answer = route(*model, exchange, *body, client);
    destroy(*body);
    if (!answer) return std::unexpected(answer.error());
    return Asked{.model_name = {}, .model = std::move(model), .answer = std::move(*answer)};
  }

  Answer with_body(HttpExchange& exchange, const Client& client, Prepare route) {
    if (const auto open = check_open(); !open) co_return std::unexpected(open.error());
    if (const auto problem = co_await exchange.read_body()) {
      co_return std::unexpected(ApiError{.status = problem->status, .message = problem->message});
    }
    const auto work_on = [&](const ModelPool::Held& model) {
      ApiResult<Asked> result = prepare(exchange, client, route, model);
      // The heap of each worker would keep what its largest request took.
      constexpr std::size_t kLarge = std::size_t{1} << 19;
      if (exchange.request().body().size() >= kLarge) ::malloc_trim(0);
      return result;
    };
    ApiResult<Asked> asked = co_await workers_.run(exchange, [&] { return work_on(nullptr); });
    if (asked && !asked->answer) {
      const ApiResult<ModelPool::Held> model = co_await pool_->get(asked->model_name, exchange);
      if (!model) co_return std::unexpected(model.error());
      asked = co_await workers_.go_on(exchange, [&] { return work_on(*model); });
    }
    if (!asked) co_return std::unexpected(asked.error());
    co_return co_await asked->answer->send(exchange, workers_);
  }

  Answer chat(HttpExchange& exchange, const Client& client) {
    return with_body(exchange, client, prepare_chat);
  }
  Answer completions(HttpExchange& exchange, const Client& client) {
    return with_body(exchange, client, prepare_completion);
  }
  Answer embeddings(HttpExchange& exchange, const Client& client) {
    return with_body(exchange, client, prepare_embeddings);
  }
  Answer tokenize(HttpExchange& exchange, const Client& client) {
    return with_body(exchange, client, prepare_tokenize);
  }
  Answer detokenize(HttpExchange& exchange, const Client& client) {
    return with_body(exchange, client, prepare_detokenize);
  }

  Answer with_library(HttpExchange& exchange, Answer (LibraryRoutes::*route)(HttpExchange&)) {
    if (const auto open = check_open(); !open) co_return std::unexpected(open.error());
    if (!routes_) co_return std::unexpected(no_library(exchange));
    co_return co_await ((*routes_).*route)(exchange);
  }
  Answer with_library(HttpExchange& exchange,
                      Answer (LibraryRoutes::*route)(HttpExchange&, const Json&)) {
    if (const auto open = check_open(); !open) co_return std::unexpected(open.error());
    if (!routes_) co_return std::unexpected(no_library(exchange));
    // A name or two: parsed here, because nothing that is longer is read.
    if (const auto problem = co_await exchange.read_body(kLimits.http_free_body_bytes)) {
      co_return std::unexpected(ApiError{.status = problem->status, .message = problem->message});
    }
    const ApiResult<Json> body = parse_json(exchange.request().body(), options_.http.limits);
    if (!body) co_return std::unexpected(body.error());
    co_return co_await ((*routes_).*route)(exchange, *body);
  }
  Answer installed(HttpExchange& exchange, const Client& /*client*/) {
    return with_library(exchange, &LibraryRoutes::list);
  }
  Answer load(HttpExchange& exchange, const Client& /*client*/) {
    return with_library(exchange, &LibraryRoutes::load);
  }
  Answer unload(HttpExchange& exchange, const Client& /*client*/) {
    return with_library(exchange, &LibraryRoutes::unload);
  }
  Answer search(HttpExchange& exchange, const Client& /*client*/) {
    return with_library(exchange, &LibraryRoutes::search);
  }
  Answer pull(HttpExchange& exchange, const Client& /*client*/) {
    return with_library(exchange, &LibraryRoutes::pull);
  }
  static ApiError no_library(const HttpExchange& exchange) {
    return {.status = 404,
            .message = format_text("There is no {}: the server was started without --hub",
                                   exchange.path())};
  }

  static ApiError still_loading() {
    return {.status = 503, .message = "The model is being loaded: try again soon"};
  }
  [[nodiscard]] ApiResult<void> check_open() const {
    if (!is_draining_) return {};
    return std::unexpected(
        ApiError{.status = 503, .message = "The server is about to end: ask another one"});
  }

  const ApiServerOptions options_;
  Metrics metrics_;
  ApiKeys keys_;
  const BrowserGuard guard_;
  std::atomic<bool> is_draining_ = false;
  const std::time_t started_ = std::time(nullptr);
  std::unique_ptr<ModelPool> pool_;
  std::unique_ptr<LibraryRoutes> routes_;  // none: clients manage no models
  WorkerPool workers_;
  std::unique_ptr<HttpServer> http_;
};

ApiServer::ApiServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ApiServer::~ApiServer() = default;

Result<std::unique_ptr<ApiServer>> ApiServer::start(const ApiServerOptions& options,
                                                    ModelPoolOptions models) {
  // Such as of a variable that is not set: everybody would have it.
  if (std::ranges::any_of(options.api_keys, [](const std::string& key) { return key.empty(); })) {
    return fail(Code::kInvalidArgument,
                "an API key is empty: give every key a text, or name none to let everybody ask");
  }
  auto impl = std::make_unique<Impl>(options);
  if (const Result<int> n_keys = impl->reload_keys(); !n_keys) {
    return std::unexpected(n_keys.error());
  }
  impl->set_models(std::move(models));  // first: somebody may have waited for the door to open
  if (const Result<void> started = impl->start(); !started) {
    return std::unexpected(started.error());
  }
  return std::unique_ptr<ApiServer>(new ApiServer(std::move(impl)));
}

Result<bool> ApiServer::is_ready() const { return impl_->is_ready(); }
std::string ApiServer::address() const { return impl_->address(); }
Result<int> ApiServer::reload_keys() { return impl_->reload_keys(); }
bool ApiServer::drain(std::chrono::milliseconds time_max) { return impl_->drain(time_max); }

}  // namespace slipstream
