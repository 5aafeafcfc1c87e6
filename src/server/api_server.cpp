#include "server/api_server.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <ctime>
#include <optional>
#include <utility>

#include "base/format.h"
#include "server/api_keys.h"
#include "server/browser_guard.h"
#include "server/metrics.h"
#include "server/routes/attachments.h"
#include "server/routes/mcp.h"
#include "server/routes/routes.h"
#include "server/routes/web_app.h"
#include "server/worker_pool.h"

namespace slipstream {

namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {

std::string error_body(int status, std::string_view message) {
  return to_json(ApiError{.status = status, .message = std::string(message)});
}

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
    if (options.rescue) rescue_.emplace(*options.rescue);
    metrics_.count_restarts(options.n_restarts);
    if (options.mcp != nullptr) mcp_ = std::make_unique<McpRoutes>(*options.mcp);
    if (options.attachments != nullptr) {
      attachments_ = std::make_unique<AttachmentRoutes>(*options.attachments);
    }
  }

  ~Impl() {
    if (library_) library_->stop();  // first: handlers wait for its searches and pulls
    if (mcp_) mcp_->stop();          // and for the index
    if (http_) http_->stop();        // before the models: handlers use them
    workers_.join();
    library_.reset();
    mcp_.reset();
    attachments_.reset();
    pool_.reset();  // the engines' last events go to handlers that no longer exist
  }

  Result<int> reload_keys() {
    if (options_.keys_file.empty()) return 0;
    const Result<std::vector<ClientKey>> keys = read_keys_file(options_.keys_file);
    if (!keys) return std::unexpected(keys.error());
    keys_.set_file_keys(*keys);
    return static_cast<int>(keys->size());
  }

  Result<void> open_responses() {
    Result<std::unique_ptr<ResponseStore>> opened = ResponseStore::open(options_.responses);
    if (!opened) return std::unexpected(opened.error());
    responses_ = std::move(*opened);
    return {};
  }

  Result<void> start() {
    auto listening = HttpServer::listen(
        options_.http, [this](HttpExchange& exchange) { return answer(exchange); }, error_body);
    if (!listening) return std::unexpected(listening.error());
    http_ = std::move(*listening);
    return {};
  }

  void set_models(ModelPoolOptions models) {
    models.retrieval = options_.retrieval;
    models.rescue = rescue_ ? &*rescue_ : nullptr;
    pool_ = std::make_unique<ModelPool>(std::move(models), metrics_);
    if (ModelLibrary* library = pool_->library()) {
      library_ = std::make_unique<LibraryRoutes>(*pool_, *library);
    }
    parts_.emplace(RouteParts{.models = *pool_,
                              .library = library_.get(),
                              .mcp = mcp_.get(),
                              .attachments = attachments_.get(),
                              .responses = *responses_,
                              .workers = workers_,
                              .metrics = metrics_,
                              .build_info = options_.build_info,
                              .started = std::time(nullptr)});
    add_routes(table_, *parts_);
  }
  [[nodiscard]] Result<bool> is_ready() const { return pool_->is_ready(); }
  [[nodiscard]] std::string address() const { return http_->address(); }
  bool drain(std::chrono::milliseconds time_max) {
    is_draining_ = true;
    if (library_) library_->stop();  // a pull is not waited for: it can be resumed
    if (mcp_) mcp_->stop();
    return http_->drain(time_max);
  }

 private:
  asio::awaitable<void> answer(HttpExchange& exchange) {
    const ApiResult<void> answered = co_await dispatch(exchange);
    if (!answered && exchange.status() == 0 && !exchange.is_gone()) {
      const Route* route = table_.find(exchange.path());
      HttpReply reply = (route == nullptr ? openai_refusal : route->refusal)(answered.error());
      if (answered.error().status == 429 || answered.error().status == 503) {
        reply.headers.emplace_back("Retry-After", std::to_string(answered.error().retry_after_s));
      }
      (void)co_await exchange.reply(std::move(reply));
    }
    metrics_.count_http(label_of(exchange.path()), exchange.outcome());
  }

  // Requests for unknown paths add no labels, so that their number stays small.
  [[nodiscard]] std::string_view label_of(std::string_view path) const {
    if (const Route* route = table_.find(path)) return route->path;
    return find_web_file(path) != nullptr ? "web" : "other";
  }

  RouteAnswer dispatch(HttpExchange& exchange) {
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
    // No key is needed: the user enters the key in this page.
    if (const WebFile* file = find_web_file(path)) co_return co_await web_app(exchange, *file);
    const Route* route = table_.find(path, method_of(request));
    // The key is checked before the answer reveals whether the path exists.
    ApiResult<Client> client =
        keys_.check(request[http::field::authorization], request["x-api-key"]);
    if (!client && (route == nullptr || !route->is_open)) {
      co_return std::unexpected(client.error());
    }
    if (route == nullptr) {
      co_return std::unexpected(
          ApiError{.status = 404, .message = format_text("There is no {}", path)});
    }
    if (method_of(request) != route->method) {
      co_return std::unexpected(wrong_method(exchange, table_.methods(path)));
    }
    if (!client) co_return co_await ask(*route, exchange, Client{});
    exchange.set_client(client->name);
    if (!client->account || route->method != http::verb::post) {
      co_return co_await ask(*route, exchange, *client);
    }
    const ApiResult<ClientAccount::Request> counted = client->account->begin();
    if (!counted) co_return std::unexpected(counted.error());
    co_return co_await ask(*route, exchange, *client);
  }

  RouteAnswer ask(const Route& route, HttpExchange& exchange, const Client& client) const {
    if (is_draining_ && !route.answers_to_the_end) {
      co_return std::unexpected(
          ApiError{.status = 503, .message = "The server is about to end: ask another one"});
    }
    co_return co_await route.answer(exchange, client);
  }

  // HEAD is handled like GET; its answer has no body.
  static http::verb method_of(const HttpRequest& request) {
    return request.method() == http::verb::head ? http::verb::get : request.method();
  }
  static ApiError wrong_method(HttpExchange& exchange, const std::string& methods) {
    std::string allowed = methods;
    if (const std::size_t get = allowed.find("GET"); get != std::string::npos) {
      allowed.insert(get + 3, ", HEAD");
    }
    exchange.add_header("Allow", std::move(allowed));
    return {.status = 405, .message = format_text("{} wants {}", exchange.path(), methods)};
  }

  static RouteAnswer web_app(HttpExchange& exchange, const WebFile& file) {
    if (method_of(exchange.request()) != http::verb::get) {
      co_return std::unexpected(wrong_method(exchange, "GET"));
    }
    (void)co_await exchange.reply(web_reply(file, exchange.request()));
    co_return ApiResult<void>();
  }

  // Answers a browser's preflight request.
  static RouteAnswer allow_headers(HttpExchange& exchange) {
    exchange.add_header("Access-Control-Allow-Methods", "GET, POST, DELETE");
    // All requested headers are allowed: the origin was already allowed, and the SDKs add headers
    // of their own, which differ by version.
    const std::string_view asked = exchange.request()["Access-Control-Request-Headers"];
    exchange.add_header("Access-Control-Allow-Headers",
                        asked.empty() ? "Authorization, Content-Type, X-Api-Key, X-Request-Id"
                                      : std::string(asked));
    exchange.add_header("Access-Control-Max-Age", "600");
    (void)co_await exchange.reply({.status = 204});
    co_return ApiResult<void>();
  }

  const ApiServerOptions options_;
  Metrics metrics_;
  ApiKeys keys_;
  const BrowserGuard guard_;
  std::atomic<bool> is_draining_ = false;
  std::optional<Rescue> rescue_;  // before the models, which use it
  std::unique_ptr<ModelPool> pool_;
  std::unique_ptr<LibraryRoutes> library_;         // null: clients cannot manage models
  std::unique_ptr<McpRoutes> mcp_;                 // null: clients do not see the index
  std::unique_ptr<AttachmentRoutes> attachments_;  // null: clients cannot attach files
  std::unique_ptr<ResponseStore> responses_;
  WorkerPool workers_;
  std::optional<RouteParts> parts_;
  RouteTable table_;
  std::unique_ptr<HttpServer> http_;
};

ApiServer::ApiServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ApiServer::~ApiServer() = default;

Result<std::unique_ptr<ApiServer>> ApiServer::start(const ApiServerOptions& options,
                                                    ModelPoolOptions models) {
  // A key may be empty because a variable is not set. Then everybody would have it.
  if (std::ranges::any_of(options.api_keys, [](const std::string& key) { return key.empty(); })) {
    return fail(Code::kInvalidArgument,
                "an API key is empty: give every key a text, or name none to let everybody ask");
  }
  auto impl = std::make_unique<Impl>(options);
  if (const Result<int> n_keys = impl->reload_keys(); !n_keys) {
    return std::unexpected(n_keys.error());
  }
  if (const Result<void> opened = impl->open_responses(); !opened) {
    return std::unexpected(opened.error());
  }
  impl->set_models(std::move(models));  // before start(): requests may come at once
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
