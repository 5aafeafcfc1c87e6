#include "server/routes/library.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "server/api/json_fields.h"
#include "server/http/http_limits.h"
#include "server/http/target.h"
#include "server/json.h"
#include "server/routes/routes.h"
#include "server/routes/waiting.h"
#include "server/run_on.h"
#include "server/sse.h"

namespace slipstream {

namespace asio = boost::asio;

namespace {

constexpr int kLibraryWaitingMax = 32;
constexpr std::size_t kSearchBytesMax = 200;

ApiResult<void> check(const Waiting& waiting) {
  if (!waiting.are_more_than(kLibraryWaitingMax)) return {};
  return std::unexpected(
      ApiError{.status = 429, .message = "Too many ask about models now: try again soon"});
}

std::string_view state_of(const std::vector<ModelPool::Status>& pooled, std::string_view name) {
  for (const ModelPool::Status& model : pooled) {
    if (model.name == name) return model.loaded ? "loaded" : "idle";
  }
  return "on disk";
}

// model: an Installed or a Recommended.
Json describe_fit(const auto& model) {
  return {{"fits", model.why_not.empty()},
          {"n_ctx", model.n_context},
          {"kv", model.kv},
          {"why", model.why_not}};
}

Json describe_installed(const ModelLibrary::Installed& model, std::string_view state) {
  return {{"name", model.name},
          {"path", model.path},
          {"bytes", model.n_bytes},
          {"quant", model.quant},
          {"state", state},
          {"fit", describe_fit(model)},
          {"removable", model.is_removable}};
}

Json describe_found(const ModelLibrary::Found& model) {
  Json files = Json::array();
  for (const ModelLibrary::Found::Variant& variant : model.variants) {
    files.push_back({{"quant", variant.quant}, {"bytes", variant.n_bytes}});
  }
  return {{"repo", model.repo}, {"downloads", model.n_downloads}, {"files", std::move(files)}};
}

Json describe_recommended(const ModelLibrary::Recommended& model) {
  return {{"name", model.name},
          {"about", model.about},
          {"bytes", model.n_bytes},
          {"fit", describe_fit(model)}};
}

ApiResult<std::string> required_text(const Json& body, std::string_view field) {
  JsonFields fields(body);
  const std::optional<std::string> text = fields.text(field);
  if (fields.error()) return std::unexpected(*fields.error());
  if (!text || text->empty()) {
    return refuse(std::string(field), format_text("'{}' must be a text", field));
  }
  return *text;
}

std::string begin_pull(const std::string& /*name*/) { return {}; }

std::string tell_pull(const PullNews& news, const std::string& /*name*/) {
  if (news.is_done) return event_of(dump({{"done", true}}));
  if (news.error) return event_of(to_json(*news.error));
  return event_of(dump({{"bytes", news.n_bytes},
                        {"bytes_all", news.n_bytes_all},
                        {"bytes_per_s", news.bytes_per_s}}));
}

ApiError no_library(const HttpExchange& exchange) {
  return {.status = 404,
          .message =
              format_text("There is no {}: the server was started without --hub", exchange.path())};
}

using PlainRoute = RouteAnswer (LibraryRoutes::*)(HttpExchange&);
RouteAnswer with_library(const RouteParts& parts, PlainRoute route, HttpExchange& exchange) {
  if (parts.library == nullptr) co_return std::unexpected(no_library(exchange));
  co_return co_await ((*parts.library).*route)(exchange);
}

using BodyRoute = RouteAnswer (LibraryRoutes::*)(HttpExchange&, const Json&);
RouteAnswer with_library(const RouteParts& parts, BodyRoute route, HttpExchange& exchange) {
  if (parts.library == nullptr) co_return std::unexpected(no_library(exchange));
  // The body has one or two names. It is parsed on this thread, because a longer body is refused.
  if (const auto problem = co_await exchange.read_body(kHttpLimits.http_free_body_bytes)) {
    co_return std::unexpected(ApiError{.status = problem->status, .message = problem->message});
  }
  const ApiResult<Json> body = parse_json(exchange.request().body());
  if (!body) co_return std::unexpected(body.error());
  co_return co_await ((*parts.library).*route)(exchange, *body);
}

}  // namespace

void add_library_routes(RouteTable& table, const RouteParts& parts) {
  using boost::beast::http::verb;
  const auto add = [&](verb method, std::string_view path, auto route) {
    table.add({.method = method,
               .path = path,
               .answer = [&parts, route](HttpExchange& exchange, const Client&) {
                 return with_library(parts, route, exchange);
               }});
  };
  add(verb::get, "/slipstream/models", &LibraryRoutes::list);
  add(verb::post, "/slipstream/models/load", &LibraryRoutes::load);
  add(verb::post, "/slipstream/models/unload", &LibraryRoutes::unload);
  add(verb::post, "/slipstream/models/remove", &LibraryRoutes::remove);
  add(verb::get, "/slipstream/recommended", &LibraryRoutes::recommend);
  add(verb::get, "/slipstream/hub/search", &LibraryRoutes::search);
  add(verb::post, "/slipstream/hub/pull", &LibraryRoutes::pull);
}

// Shared by the handler and the thread that pulls. If the handler ends first, the thread ends soon.
struct LibraryRoutes::Pull {
  using Clock = std::chrono::steady_clock;

  Pull(std::string model_name, const asio::any_io_executor& executor)
      : name(std::move(model_name)), news(std::make_shared<Signal>(executor)) {}

  void run(ModelLibrary& library) {
    log::info("hub.pull", {{"model", name}});
    Result<void> pulled;
    try {
      pulled = library.pull(
          name, [this](const ModelLibrary::Progress& progress) { note(progress); },
          stop.get_token());
    } catch (const std::exception& error) {
      pulled = fail(Code::kIo, error.what());
    }
    log::info("hub.pulled",
              {{"model", name}, {"error", pulled ? "-" : pulled.error().message.c_str()}});
    {
      const MutexLock lock(mutex);
      ending = std::move(pulled);
    }
    news->notify();
  }

  void note(const ModelLibrary::Progress& progress) {
    {
      const MutexLock lock(mutex);
      if (begun == Clock::time_point()) {
        begun = Clock::now();
        n_bytes_begun = progress.n_bytes;  // downloaded by an earlier pull
      }
      latest = progress;
    }
    news->notify();
  }

  [[nodiscard]] PullNews look() {
    const MutexLock lock(mutex);
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    const auto n_bytes = static_cast<double>(latest.n_bytes - n_bytes_begun);
    PullNews now{.n_bytes = latest.n_bytes,
                 .n_bytes_all = latest.n_bytes_all,
                 .bytes_per_s = seconds > 0 ? n_bytes / seconds : 0};
    if (ending) now.is_done = ending->has_value();
    if (ending && !*ending) now.error = to_api_error(ending->error());
    return now;
  }
  [[nodiscard]] bool has_ended() {
    const MutexLock lock(mutex);
    return ending.has_value();
  }

  const std::string name;
  const std::shared_ptr<Signal> news;
  std::stop_source stop;
  Mutex mutex;
  Clock::time_point begun SLIP_GUARDED_BY(mutex) = {};
  std::uint64_t n_bytes_begun SLIP_GUARDED_BY(mutex) = 0;
  ModelLibrary::Progress latest SLIP_GUARDED_BY(mutex) = {};
  std::optional<Result<void>> ending SLIP_GUARDED_BY(mutex) = {};
};

RouteAnswer LibraryRoutes::list(HttpExchange& exchange) {
  const Waiting waiting(n_waiting_);
  if (const auto checked = check(waiting); !checked) co_return checked;
  const auto models = co_await run_on(disk_, [this] { return library_.list(); });
  if (!models) co_return std::unexpected(to_api_error(models.error()));
  const std::vector<ModelPool::Status> pooled = models_.list();
  Json described = Json::array();
  for (const ModelLibrary::Installed& model : *models) {
    described.push_back(describe_installed(model, state_of(pooled, model.name)));
  }
  (void)co_await exchange.reply({.body = dump({{"models", std::move(described)}})});
  co_return ApiResult<void>();
}

RouteAnswer LibraryRoutes::load(HttpExchange& exchange, const Json& body) {
  const ApiResult<std::string> name = required_text(body, "name");
  if (!name) co_return std::unexpected(name.error());
  ApiResult<ModelPool::Held> model = co_await models_.get(*name, exchange);
  if (!model) co_return std::unexpected(model.error());
  std::string body_text = dump({{"name", (*model)->name}, {"state", "loaded"}});
  model->reset();  // so that a slow client does not keep the model loaded
  (void)co_await exchange.reply({.body = std::move(body_text)});
  co_return ApiResult<void>();
}

RouteAnswer LibraryRoutes::unload(HttpExchange& exchange, const Json& body) {
  const ApiResult<std::string> name = required_text(body, "name");
  if (!name) co_return std::unexpected(name.error());
  // Freeing gigabytes takes a while.
  const auto unloaded = co_await run_on(disk_, [&] { return models_.unload(*name); });
  if (!unloaded) co_return std::unexpected(unloaded.error());
  (void)co_await exchange.reply({.body = dump({{"name", *name}, {"state", "idle"}})});
  co_return ApiResult<void>();
}

// What is in use stays. The pool forgets it first, so that nobody loads it from there while its files
// go.
RouteAnswer LibraryRoutes::remove(HttpExchange& exchange, const Json& body) {
  const ApiResult<std::string> name = required_text(body, "name");
  if (!name) co_return std::unexpected(name.error());
  const Waiting waiting(n_waiting_);
  if (const auto checked = check(waiting); !checked) co_return checked;
  const auto removed = co_await run_on(disk_, [&]() -> ApiResult<void> {
    if (ApiResult<void> forgotten = models_.forget(*name); !forgotten) return forgotten;
    const Result<void> gone = library_.remove(*name);
    if (gone) return {};
    ApiError error = to_api_error(gone.error());
    if (gone.error().code == Code::kOverloaded) error.status = 409;
    return std::unexpected(std::move(error));
  });
  if (!removed) co_return std::unexpected(removed.error());
  log::info("hub.remove", {{"model", *name}});
  (void)co_await exchange.reply({.body = dump({{"name", *name}, {"state", "removed"}})});
  co_return ApiResult<void>();
}

RouteAnswer LibraryRoutes::recommend(HttpExchange& exchange) {
  const Waiting waiting(n_waiting_);
  if (const auto checked = check(waiting); !checked) co_return checked;
  const auto models =
      co_await run_on(search_, [this] { return library_.recommend(stop_.get_token()); });
  if (!models) co_return std::unexpected(to_api_error(models.error()));
  Json described = Json::array();
  for (const ModelLibrary::Recommended& model : *models) {
    described.push_back(describe_recommended(model));
  }
  (void)co_await exchange.reply({.body = dump({{"models", std::move(described)}})});
  co_return ApiResult<void>();
}

RouteAnswer LibraryRoutes::search(HttpExchange& exchange) {
  const std::string text = query_value(exchange.request().target(), "q");
  if (text.size() > kSearchBytesMax) {
    co_return refuse("q", format_text("'q' may have {} bytes", kSearchBytesMax));
  }
  Json results = Json::array();
  if (!text.empty()) {
    const Waiting waiting(n_waiting_);
    if (const auto checked = check(waiting); !checked) co_return checked;
    const auto found =
        co_await run_on(search_, [&] { return library_.search(text, stop_.get_token()); });
    if (!found) co_return std::unexpected(to_api_error(found.error()));
    for (const ModelLibrary::Found& model : *found) results.push_back(describe_found(model));
  }
  (void)co_await exchange.reply({.body = dump({{"results", std::move(results)}})});
  co_return ApiResult<void>();
}

ApiResult<void> LibraryRoutes::begin(const std::shared_ptr<Pull>& pull) {
  const MutexLock lock(mutex_);
  if (stop_.stop_requested()) {
    return std::unexpected(
        ApiError{.status = 503, .message = "The server is about to end: ask another one"});
  }
  // A stopped pull ends soon, and this one waits for its thread.
  if (current_ && !current_->has_ended() && !current_->stop.stop_requested()) {
    return std::unexpected(
        ApiError{.status = 409,
                 .message = format_text("One model is pulled at a time, and {} is now: wait for it",
                                        current_->name),
                 .code = "pull_in_progress"});
  }
  current_ = pull;
  asio::post(pull_, [pull, this] { pull->run(library_); });
  return {};
}

RouteAnswer LibraryRoutes::pull(HttpExchange& exchange, const Json& body) {
  const ApiResult<std::string> repo = required_text(body, "repo");
  if (!repo) co_return std::unexpected(repo.error());
  const ApiResult<std::string> quant = required_text(body, "quant");
  if (!quant) co_return std::unexpected(quant.error());
  PullForm form{.head = event_stream_head(), .begin = begin_pull, .tell = tell_pull};
  std::string name = *repo + ":" + *quant;
  co_return co_await pull_as(std::move(form), exchange, std::move(name));
}

RouteAnswer LibraryRoutes::pull_as(PullForm form, HttpExchange& exchange, std::string name) {
  if (const Result<void> checked = library_.check_name(name); !checked) {
    co_return refuse("repo", checked.error().message);
  }
  const auto pull = std::make_shared<Pull>(name, exchange.executor());
  if (const ApiResult<void> begun = begin(pull); !begun) co_return begun;
  struct StopAtEnd {
    std::stop_source& stop;
    ~StopAtEnd() { stop.request_stop(); }
  };
  const StopAtEnd stop_at_end{pull->stop};
  if (form.streams) {
    if (!co_await exchange.begin_stream(form.head)) co_return ApiResult<void>();
    const std::string first = form.begin(name);
    if (!co_await exchange.send(first)) co_return ApiResult<void>();
  }
  PullNews news;
  while (!news.is_done && !news.error) {
    if (!co_await exchange.wait(*pull->news)) co_return ApiResult<void>();
    news = pull->look();
    const std::string told = form.tell(news, name);
    if (form.streams && !co_await exchange.send(told)) co_return ApiResult<void>();
  }
  if (form.streams) {
    (void)co_await exchange.end_stream();
  } else if (news.error) {
    co_return std::unexpected(*news.error);
  } else {
    (void)co_await exchange.reply({.body = form.tell(news, name)});
  }
  co_return ApiResult<void>();
}

void LibraryRoutes::stop() {
  const MutexLock lock(mutex_);
  stop_.request_stop();
  if (current_) current_->stop.request_stop();
}

}  // namespace slipstream
