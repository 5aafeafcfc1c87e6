// The routes with which the web app manages models: GET /slipstream/models, POST
// /slipstream/models/load, /unload and /remove, GET /slipstream/recommended, GET
// /slipstream/hub/search, POST /slipstream/hub/pull.
//
// One model is pulled at a time, on its own thread. A second pull is refused with 409. The client
// of a pull gets events with its progress. The pull ends if the client disconnects; the next pull
// of the model resumes it.
//
// Threads: thread-safe.
// Errors:  ApiErrors; an event for a pull that has begun.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "server/http/http_exchange.h"
#include "server/json.h"
#include "server/model_library.h"
#include "server/model_pool.h"
#include "server/routes/route_table.h"

namespace slipstream {

// What happened to a pull.
struct PullNews {
  std::uint64_t n_bytes = 0;
  std::uint64_t n_bytes_all = 0;
  double bytes_per_s = 0;
  bool is_done = false;
  std::optional<ApiError> error = {};
};

// How a client is told of it.
struct PullForm {
  bool streams = true;  // false: only the last news, and an error as the status of the answer
  HttpReply head;
  std::string (*begin)(const std::string& name);
  std::string (*tell)(const PullNews& news, const std::string& name);
};

class LibraryRoutes {
 public:
  LibraryRoutes(ModelPool& models, ModelLibrary& library) : models_(models), library_(library) {}
  ~LibraryRoutes() { stop(); }
  LibraryRoutes(const LibraryRoutes&) = delete;
  LibraryRoutes& operator=(const LibraryRoutes&) = delete;

  RouteAnswer list(HttpExchange& exchange);
  RouteAnswer load(HttpExchange& exchange, const Json& body);
  RouteAnswer unload(HttpExchange& exchange, const Json& body);
  RouteAnswer remove(HttpExchange& exchange, const Json& body);
  RouteAnswer recommend(HttpExchange& exchange);
  RouteAnswer search(HttpExchange& exchange);
  RouteAnswer pull(HttpExchange& exchange, const Json& body);
  // The same for other APIs. name: "org/repo:quant", or without the quant.
  RouteAnswer pull_as(PullForm form, HttpExchange& exchange, std::string name);

  // Makes searches and pulls end soon, and refuses new ones.
  void stop();

 private:
  struct Pull;
  [[nodiscard]] ApiResult<void> begin(const std::shared_ptr<Pull>& pull);

  ModelPool& models_;
  ModelLibrary& library_;
  std::stop_source stop_;
  std::atomic<int> n_waiting_ = 0;  // number of waiting lists and searches
  Mutex mutex_;
  std::shared_ptr<Pull> current_ SLIP_GUARDED_BY(mutex_);  // the pull that began last
  // Must be the last members: their threads use all others.
  boost::asio::thread_pool disk_{1};
  boost::asio::thread_pool search_{1};
  boost::asio::thread_pool pull_{1};
};

}  // namespace slipstream
