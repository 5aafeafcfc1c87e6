// ModelPool: the models that clients can name. Pinned ones are loaded at once and stay; others are
// loaded when they are asked for, and make room again when they are not.
//
// A name that is none of theirs is looked for in the library, if there is one: a model that is
// installed becomes one more of those that are loaded when they are asked for.
//
// Whoever uses a model holds it, and what is held is never unloaded. Where a model does not fit
// beside those that are loaded, idle ones go, least recently used first; where that is not enough,
// the request is told to come back. One model is loaded at a time, on a thread of the pool's own.
//
// Threads: thread-safe; get() is awaited on the handler's executor. Errors: ApiErrors: 404 for an
// unknown name, 503 where it cannot be had now, 409 for one that cannot be unloaded.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "server/api/api_error.h"
#include "server/http/http_exchange.h"
#include "server/model_library.h"
#include "server/served_model.h"

namespace slipstream {

struct PooledModel {
  std::string name;
  std::uint64_t bytes = 0;  // that it will take, as forecast
  bool is_pinned = false;
  // On the pool's thread; gives up when it is stopped.
  std::function<Result<std::unique_ptr<ServedModel>>(const std::stop_token&)> load;
};

struct ModelPoolOptions {
  std::vector<PooledModel> models;  // the first is meant where no name is given
  std::uint64_t bytes_max = UINT64_MAX;
  std::chrono::seconds idle_time_max{0};  // after which one is unloaded; 0: when room is needed
  std::unique_ptr<ModelLibrary> library = {};  // none: there are no others
};

class ModelPool {
 public:
  ModelPool(ModelPoolOptions options, Metrics& metrics);
  ~ModelPool();
  ModelPool(const ModelPool&) = delete;
  ModelPool& operator=(const ModelPool&) = delete;

  using Held = std::shared_ptr<ServedModel>;
  // Null: it is not loaded, or there is none.
  [[nodiscard]] Held find_loaded(std::string_view name);
  // The name under which get() finds it; a model of the library becomes one of the pool's.
  boost::asio::awaitable<ApiResult<std::string>> resolve(std::string name);
  // Called after each HttpExchange::silence_max() of waiting; false: the client has gone.
  using AtSilence = std::function<boost::asio::awaitable<bool>()>;
  // Waits while it is loaded.
  boost::asio::awaitable<ApiResult<Held>> get(std::string name, HttpExchange& exchange,
                                              AtSilence at_silence = {});
  // Waits while it is destroyed, and for a moment until it is idle. One that is not loaded is none
  // to unload, and that is fine.
  [[nodiscard]] ApiResult<void> unload(std::string_view name);
  [[nodiscard]] ModelLibrary* library() const { return library_.get(); }

  // Whether all pinned ones are loaded; an error if one could not be.
  [[nodiscard]] Result<bool> is_ready() const;

  struct Status {
    std::string name;
    Held loaded;  // null: it is not
  };
  [[nodiscard]] std::vector<Status> list() const;
  // With those of the library that fit.
  boost::asio::awaitable<ApiResult<std::vector<Status>>> list_all();
  boost::asio::awaitable<ApiResult<Status>> status(std::string name);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    PooledModel model;
    Held loaded = {};
    bool is_wanted = false;
    std::optional<Error> error = {};  // of the last time it was loaded
    Clock::time_point last_used = {};
    std::vector<std::shared_ptr<Signal>> waiting = {};
  };

  [[nodiscard]] Entry* find(std::string_view name) SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] ApiError unknown(std::string_view name) const SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] std::string add(PooledModel model);
  void run(const std::stop_token& stop);
  void wait_for_work(const std::stop_token& stop);
  void unload_idle();
  void wait_while_held(std::string_view name);
  void load(Entry& entry, const std::stop_token& stop);
  [[nodiscard]] Result<void> make_room(const Entry& entry);
  void settle(Entry& entry, Result<std::unique_ptr<ServedModel>> loaded);
  [[nodiscard]] Entry* least_recently_used_idle() SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] std::uint64_t bytes_loaded() const SLIP_TSA(requires_capability(mutex_));

  const std::uint64_t bytes_max_;
  const std::chrono::seconds idle_time_max_;
  Metrics& metrics_;
  mutable Mutex mutex_;
  std::condition_variable_any has_work_;
  std::deque<Entry> entries_ SLIP_GUARDED_BY(mutex_);  // never moved, and none ever leaves
  const std::unique_ptr<ModelLibrary> library_;

  std::atomic<int> n_looking_ = 0;
  boost::asio::thread_pool disk_{1};  // looks into the library
  std::jthread thread_;               // last: it uses everything above
};

}  // namespace slipstream
