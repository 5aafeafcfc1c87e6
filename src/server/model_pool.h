// ModelPool: the models that clients can name. Pinned models are loaded at once and stay loaded.
// Others are loaded on request and may be unloaded when idle. The pool looks for an unknown name in
// the library, if there is one, and adds the installed model to those loaded on request.
//
// A user of a model holds it, and a held model is never unloaded. If a model does not fit, the pool
// unloads idle ones, least recently used first. If that is not enough, the client is told to try
// again. One model is loaded at a time, on the pool's own thread.
//
// Threads: thread-safe; get() is awaited on the handler's executor.
// Errors:  ApiErrors: 404 for an unknown name, 503 if a model cannot be used now, 409 if it cannot
//          be unloaded.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
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
  std::uint64_t bytes = 0;  // forecast of the memory that it takes
  bool is_pinned = false;
  std::string path = {};  // of its file, or of the first part; with the next two for descriptions
  std::uint64_t file_bytes = 0;
  std::string quant = {};
  // Runs on the pool's thread. Gives up when it is stopped.
  std::function<Result<std::unique_ptr<ServedModel>>(const std::stop_token&)> load;
};

struct ModelPoolOptions {
  std::vector<PooledModel> models;  // the first is used if a request names none
  std::uint64_t bytes_max = UINT64_MAX;
  std::chrono::seconds idle_time_max{0};  // then a model is unloaded; 0: only when room is needed
  std::unique_ptr<ModelLibrary> library = {};  // null: there are no other models
  // For all models; they outlive the pool, and may be null.
  Retrieval* retrieval = nullptr;
  const Rescue* rescue = nullptr;
};

class ModelPool {
 public:
  ModelPool(ModelPoolOptions options, Metrics& metrics);
  ~ModelPool();
  ModelPool(const ModelPool&) = delete;
  ModelPool& operator=(const ModelPool&) = delete;

  using Held = std::shared_ptr<ServedModel>;
  // Returns null if the model is not loaded or not in the pool.
  [[nodiscard]] Held find_loaded(std::string_view name);
  // Returns the name under which get() finds the model. Adds a model of the library to the pool.
  boost::asio::awaitable<ApiResult<std::string>> resolve(std::string name);
  // Called after each HttpExchange::silence_max() of waiting. Returns false if the client has gone.
  using AtSilence = std::function<boost::asio::awaitable<bool>()>;
  // Waits until the model is loaded.
  boost::asio::awaitable<ApiResult<Held>> get(std::string name, HttpExchange& exchange,
                                              AtSilence at_silence = {});
  // Waits a moment for the model to become idle, and then while it is destroyed. Succeeds if the
  // model is not loaded.
  [[nodiscard]] ApiResult<void> unload(std::string_view name);
  // The same, and the model is no longer one of the pool: the next who names it has it looked for in
  // the library. Succeeds if the pool does not have it.
  [[nodiscard]] ApiResult<void> forget(std::string_view name);
  // For how long the model stays loaded without use, instead of idle_time_max; max(): until room is
  // needed. Only where there is a library, that is, where clients may unload models; no effect on
  // pinned ones.
  void keep(std::string_view name, std::chrono::seconds idle_time_max);
  [[nodiscard]] ModelLibrary* library() const { return library_.get(); }

  // Whether all pinned models are loaded; an error if one could not be loaded.
  [[nodiscard]] Result<bool> is_ready() const;

  struct Status {
    std::string name;
    Held loaded;  // null: it is not loaded
    std::string path = {};
    std::uint64_t n_bytes = 0;  // of its file
    std::string quant = {};
  };
  [[nodiscard]] std::vector<Status> list() const;
  // Includes the models of the library that fit.
  boost::asio::awaitable<ApiResult<std::vector<Status>>> list_all();
  boost::asio::awaitable<ApiResult<Status>> status(std::string name);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    PooledModel model;
    Held loaded = {};
    bool is_wanted = false;
    bool is_forgotten = false;        // as if it were not there; the next new model takes its place
    std::optional<Error> error = {};  // of the last load, if it failed
    Clock::time_point last_used = {};
    std::optional<std::chrono::seconds> idle_time_max = {};  // none: that of all
    Clock::time_point promised_until = {};                   // to those who waited for it
    std::vector<std::shared_ptr<Signal>> waiting = {};
  };

  [[nodiscard]] Entry* find(std::string_view name) SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] ApiError unknown(std::string_view name) const SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] std::string add(PooledModel model);
  void run(const std::stop_token& stop);
  void wait_for_work(const std::stop_token& stop);
  void unload_idle();
  [[nodiscard]] Entry* find_outstayed() SLIP_TSA(requires_capability(mutex_));
  void wait_while_held(std::string_view name);
  void load(Entry& entry, const std::stop_token& stop);
  [[nodiscard]] Result<void> make_room(const Entry& entry);
  void settle(Entry& entry, Result<std::unique_ptr<ServedModel>> loaded);
  [[nodiscard]] static bool is_idle(const Entry& entry);
  [[nodiscard]] Entry* least_recently_used_idle() SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] std::uint64_t bytes_loaded() const SLIP_TSA(requires_capability(mutex_));

  const std::uint64_t bytes_max_;
  const std::chrono::seconds idle_time_max_;
  Metrics& metrics_;
  Retrieval* const retrieval_;
  const Rescue* const rescue_;
  mutable Mutex mutex_;
  std::condition_variable_any has_work_;
  std::deque<Entry> entries_ SLIP_GUARDED_BY(mutex_);  // entries are never moved or erased
  const std::unique_ptr<ModelLibrary> library_;

  bool has_own_idle_times_ SLIP_GUARDED_BY(mutex_) = false;

  std::atomic<int> n_looking_ = 0;
  boost::asio::thread_pool disk_{1};  // reads the library
  std::jthread thread_;               // must be the last member: it uses all others
};

}  // namespace slipstream
