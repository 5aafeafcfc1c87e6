#include "server/model_pool.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/format.h"
#include "base/format_bytes.h"
#include "base/log.h"
#include "server/run_on.h"

namespace slipstream {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds kIdleLong = std::chrono::years(100);  // the clock can add no more

}  // namespace

ModelPool::ModelPool(ModelPoolOptions options, Metrics& metrics)
    : bytes_max_(options.bytes_max),
      idle_time_max_(options.idle_time_max),
      metrics_(metrics),
      retrieval_(options.retrieval),
      rescue_(options.rescue),
      library_(std::move(options.library)) {
  {
    const MutexLock lock(mutex_);
    for (PooledModel& model : options.models) {
      const bool is_wanted = model.is_pinned;
      entries_.push_back({.model = std::move(model), .is_wanted = is_wanted});
    }
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

ModelPool::~ModelPool() = default;

// Ollama's clients end a name that has no tag with ":latest".
ModelPool::Entry* ModelPool::find(std::string_view name) {
  constexpr std::string_view kLatest = ":latest";
  if (name.empty()) {
    const auto first = std::ranges::find(entries_, false, &Entry::is_forgotten);
    return first == entries_.end() ? nullptr : &*first;
  }
  const auto entry = std::ranges::find_if(
      entries_, [&](const Entry& e) { return !e.is_forgotten && e.model.name == name; });
  if (entry != entries_.end()) return &*entry;
  if (!name.ends_with(kLatest) || name == kLatest) return nullptr;
  return find(name.substr(0, name.size() - kLatest.size()));
}

ApiError ModelPool::unknown(std::string_view name) const {
  std::string names;
  for (const Entry& entry : entries_) {
    if (entry.is_forgotten) continue;
    names += format_text("{}'{}'", names.empty() ? "" : ", ", entry.model.name);
  }
  if (library_) names += format_text("{}what is installed", names.empty() ? "" : " and ");
  return {.status = 404,
          .message = format_text("The model '{}' does not exist: there is {}", name, names),
          .param = "model",
          .code = "model_not_found"};
}

asio::awaitable<ApiResult<std::string>> ModelPool::resolve(std::string name) {
  {
    const MutexLock lock(mutex_);
    if (const Entry* entry = find(name)) co_return entry->model.name;
    if (!library_ || name.empty()) co_return std::unexpected(unknown(name));
  }
  Result<PooledModel> model = co_await run_on(disk_, [&] { return library_->find(name); });
  if (model) co_return add(std::move(*model));
  const MutexLock lock(mutex_);
  ApiError error = unknown(name);
  if (model.error().code != Code::kInvalidArgument) error.message = model.error().message;
  if (model.error().code == Code::kOutOfMemory) error.status = 503;  // it exists and does not fit
  co_return std::unexpected(std::move(error));
}

// Two requests may have looked for the same model at the same time, so it may be there already.
std::string ModelPool::add(PooledModel model) {
  const MutexLock lock(mutex_);
  std::string name = model.name;
  if (find(name) != nullptr) return name;
  const auto free = std::ranges::find(entries_, true, &Entry::is_forgotten);
  if (free == entries_.end()) {
    entries_.push_back({.model = std::move(model)});
  } else {
    *free = {.model = std::move(model)};
  }
  return name;
}

ModelPool::Held ModelPool::find_loaded(std::string_view name) {
  const MutexLock lock(mutex_);
  Entry* entry = find(name);
  if (entry == nullptr || !entry->loaded) return nullptr;
  entry->last_used = Clock::now();
  return entry->loaded;
}

asio::awaitable<ApiResult<ModelPool::Held>> ModelPool::get(std::string asked,
                                                           HttpExchange& exchange,
                                                           AtSilence at_silence) {
  const ApiResult<std::string> name = co_await resolve(std::move(asked));
  if (!name) co_return std::unexpected(name.error());
  const auto signal = std::make_shared<Signal>(exchange.executor());
  const auto time_max = at_silence ? exchange.silence_max() : Signal::kForever;
  bool has_asked = false;
  while (true) {
    {
      const MutexLock lock(mutex_);
      Entry* entry = find(*name);
      if (entry == nullptr) co_return std::unexpected(unknown(*name));  // removed meanwhile
      entry->last_used = Clock::now();
      if (entry->loaded) {
        entry->promised_until = {};
        co_return entry->loaded;
      }
      if (has_asked && !entry->is_wanted && entry->error) {
        co_return std::unexpected(
            ApiError{.status = 503,
                     .message = format_text("The model '{}' cannot be used now: {}",
                                            entry->model.name, entry->error->message),
                     .param = "model"});
      }
      entry->is_wanted = true;
      // After a silence the signal is already in the list.
      if (!std::ranges::contains(entry->waiting, signal)) entry->waiting.push_back(signal);
    }
    has_work_.notify_one();
    const bool is_there = !has_asked || !at_silence || co_await at_silence();
    has_asked = true;
    if (!is_there || !co_await exchange.wait(*signal, time_max)) {
      co_return std::unexpected(ApiError{.status = 499, .message = "the client has gone"});
    }
  }
}

// A client that has its answer may ask to unload the model before that answer's handler releases
// the model.
void ModelPool::wait_while_held(std::string_view name) {
  constexpr std::chrono::seconds kPatience{1};
  constexpr std::chrono::milliseconds kLookAgain{10};
  const Clock::time_point end = Clock::now() + kPatience;
  while (Clock::now() < end) {
    {
      const MutexLock lock(mutex_);
      const Entry* entry = find(name);
      if (entry == nullptr || entry->model.is_pinned || entry->loaded.use_count() <= 1) return;
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

ApiResult<void> ModelPool::unload(std::string_view name) {
  wait_while_held(name);
  Held unloaded;  // destroyed without the lock: it takes a while
  const MutexLock lock(mutex_);
  Entry* entry = find(name);
  if (entry == nullptr) return std::unexpected(unknown(name));
  const auto refusal = [&](std::string_view why) {
    return std::unexpected(ApiError{
        .status = 409, .message = format_text("The model '{}' {}", entry->model.name, why)});
  };
  if (entry->model.is_pinned) {
    return refusal("stays loaded: the server was started with it");
  }
  if (entry->is_wanted) return refusal("is being loaded: try again soon");
  if (!entry->loaded) return {};
  if (entry->loaded.use_count() > 1) return refusal("is in use: try again soon");
  log::info("serve.unload", {{"model", entry->model.name}, {"why", "asked"}});
  unloaded = std::exchange(entry->loaded, nullptr);
  return {};
}

ApiResult<void> ModelPool::forget(std::string_view name) {
  if (ApiResult<void> unloaded = unload(name); !unloaded) {
    if (unloaded.error().status == 404) return {};
    return unloaded;
  }
  const MutexLock lock(mutex_);
  Entry* entry = find(name);
  if (entry == nullptr) return {};
  if (entry->is_wanted || entry->loaded) {
    return std::unexpected(ApiError{
        .status = 409,
        .message = format_text("The model '{}' is in use: try again soon", entry->model.name)});
  }
  entry->is_forgotten = true;
  return {};
}

void ModelPool::keep(std::string_view name, std::chrono::seconds idle_time_max) {
  if (!library_) return;
  {
    const MutexLock lock(mutex_);
    Entry* entry = find(name);
    if (entry == nullptr || entry->model.is_pinned) return;
    entry->idle_time_max = idle_time_max;
    has_own_idle_times_ = true;
  }
  has_work_.notify_one();
}

Result<bool> ModelPool::is_ready() const {
  const MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    if (!entry.model.is_pinned || entry.loaded) continue;
    if (entry.error && !entry.is_wanted) return std::unexpected(*entry.error);
    return false;
  }
  return true;
}

std::vector<ModelPool::Status> ModelPool::list() const {
  const MutexLock lock(mutex_);
  std::vector<Status> statuses;
  for (const Entry& entry : entries_) {
    if (entry.is_forgotten) continue;
    statuses.push_back({.name = entry.model.name,
                        .loaded = entry.loaded,
                        .path = entry.model.path,
                        .n_bytes = entry.model.file_bytes,
                        .quant = entry.model.quant});
  }
  return statuses;
}

// At most kLookingMax requests wait in the queue for the library.
asio::awaitable<ApiResult<std::vector<ModelPool::Status>>> ModelPool::list_all() {
  constexpr int kLookingMax = 32;
  std::vector<Status> statuses = list();
  if (!library_) co_return statuses;
  struct Place {
    explicit Place(std::atomic<int>& n) : n_(n), number(++n) {}
    ~Place() { --n_; }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    std::atomic<int>& n_;
    const int number;
  };
  const Place place(n_looking_);
  if (place.number > kLookingMax) {
    co_return std::unexpected(
        ApiError{.status = 429, .message = "Too many ask about models now: try again soon"});
  }
  const Result<std::vector<ModelLibrary::Installed>> installed =
      co_await run_on(disk_, [this] { return library_->list(); });
  if (!installed) co_return std::unexpected(to_api_error(installed.error()));
  for (const ModelLibrary::Installed& model : *installed) {
    const bool is_known = std::ranges::contains(statuses, model.name, &Status::name);
    if (is_known || !model.why_not.empty()) continue;
    statuses.push_back({.name = model.name,
                        .loaded = {},
                        .path = model.path,
                        .n_bytes = model.n_bytes,
                        .quant = model.quant});
  }
  co_return statuses;
}

asio::awaitable<ApiResult<ModelPool::Status>> ModelPool::status(std::string name) {
  const ApiResult<std::vector<Status>> all = co_await list_all();
  if (!all) co_return std::unexpected(all.error());
  const MutexLock lock(mutex_);
  if (const Entry* entry = find(name)) name = entry->model.name;
  const auto found = std::ranges::find(*all, name, &Status::name);
  if (found != all->end()) co_return *found;
  co_return std::unexpected(unknown(name));
}

void ModelPool::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Entry* wanted = nullptr;
    {
      const MutexLock lock(mutex_);
      const auto entry = std::ranges::find(entries_, true, &Entry::is_wanted);
      if (entry != entries_.end()) wanted = &*entry;
    }
    if (wanted != nullptr) {
      load(*wanted, stop);
    } else {
      unload_idle();
      wait_for_work(stop);
    }
  }
}

void ModelPool::wait_for_work(const std::stop_token& stop) {
  constexpr std::chrono::seconds kLookAgain{1};  // for idle models
  const MutexLock lock(mutex_);
  const auto has_work = [this]() SLIP_TSA(no_thread_safety_analysis) {
    return std::ranges::contains(entries_, true, &Entry::is_wanted);
  };
  if (idle_time_max_.count() == 0 && !has_own_idle_times_) {
    has_work_.wait(mutex_, stop, [&]() SLIP_TSA(no_thread_safety_analysis) {
      return has_work() || has_own_idle_times_;  // keep() sets it
    });
  } else {
    has_work_.wait_for(mutex_, stop, kLookAgain, has_work);
  }
}

// The model that has been idle for longer than it may; null if there is none.
ModelPool::Entry* ModelPool::find_outstayed() {
  for (Entry& entry : entries_) {
    if (!is_idle(entry)) continue;
    if (!entry.idle_time_max && idle_time_max_.count() == 0) continue;
    const std::chrono::seconds time_max = entry.idle_time_max.value_or(idle_time_max_);
    if (Clock::now() - entry.last_used >= std::min(time_max, kIdleLong)) return &entry;
  }
  return nullptr;
}

void ModelPool::unload_idle() {
  while (true) {
    Held unloaded;  // destroyed without the lock: it takes a while
    {
      const MutexLock lock(mutex_);
      Entry* entry = find_outstayed();
      if (entry == nullptr) return;
      log::info("serve.unload", {{"model", entry->model.name}, {"why", "idle"}});
      unloaded = std::exchange(entry->loaded, nullptr);
    }
  }
}

// An exception, for example for lack of memory, fails the load of this model but not the process.
void ModelPool::load(Entry& entry, const std::stop_token& stop) {
  try {
    const Result<void> has_room = make_room(entry);
    settle(entry, has_room ? entry.model.load(stop) : std::unexpected(has_room.error()));
  } catch (const std::exception& error) {
    settle(entry, fail(Code::kOutOfMemory, format_text("loading failed: {}", error.what())));
  }
}

Result<void> ModelPool::make_room(const Entry& entry) {
  while (true) {
    Held unloaded;
    const MutexLock lock(mutex_);
    if (bytes_loaded() + entry.model.bytes <= bytes_max_) return {};
    Entry* idle = least_recently_used_idle();
    if (idle == nullptr) {
      return fail(Code::kOverloaded,
                  format_text("it needs {}, and {} of the {} that models may take are in use",
                              format_bytes(entry.model.bytes), format_bytes(bytes_loaded()),
                              format_bytes(bytes_max_)));
    }
    log::info("serve.unload", {{"model", idle->model.name}, {"why", "room"}});
    unloaded = std::exchange(idle->loaded, nullptr);
  }
}

void ModelPool::settle(Entry& entry, Result<std::unique_ptr<ServedModel>> loaded) {
  std::vector<std::shared_ptr<Signal>> waiting;
  {
    const MutexLock lock(mutex_);
    entry.is_wanted = false;
    entry.last_used = Clock::now();
    if (loaded) {
      entry.error.reset();
      // Otherwise the next model that is wanted could take its place before anybody has used it.
      constexpr std::chrono::seconds kTimeToTakeIt{1};
      if (!entry.waiting.empty()) entry.promised_until = Clock::now() + kTimeToTakeIt;
      entry.loaded = std::move(*loaded);
      entry.loaded->metrics = &metrics_.requests_of(entry.model.name);
      entry.loaded->retrieval = retrieval_;
      entry.loaded->rescue = rescue_;
      log::info("serve.load", {{"model", entry.model.name}});
    } else {
      entry.error = loaded.error();
      log::warn("serve.load", {{"model", entry.model.name}, {"error", loaded.error().message}});
    }
    waiting.swap(entry.waiting);
  }
  for (const std::shared_ptr<Signal>& signal : waiting) signal->notify();
}

// Nobody can begin to hold it while the lock is held, because get() needs it, too.
bool ModelPool::is_idle(const Entry& entry) {
  return entry.loaded && !entry.model.is_pinned && entry.loaded.use_count() <= 1 &&
         entry.promised_until <= Clock::now();
}

ModelPool::Entry* ModelPool::least_recently_used_idle() {
  Entry* oldest = nullptr;
  for (Entry& entry : entries_) {
    if (!is_idle(entry)) continue;
    if (oldest == nullptr || entry.last_used < oldest->last_used) oldest = &entry;
  }
  return oldest;
}

std::uint64_t ModelPool::bytes_loaded() const {
  std::uint64_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.loaded ? entry.model.bytes : 0;
  return bytes;
}

}  // namespace slipstream
