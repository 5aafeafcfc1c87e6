// HttpServer: HTTP/1.1 on one address. Each connection is a coroutine; a few threads run them all.
//
// Everything that a client can use up is bounded (HttpLimits, HttpOptions): sizes of header and
// body, the time for each, the time to read an answer and between two requests, what it sends
// before it is answered, the number of connections, and the total size of all bodies. The handler
// is called when the header has arrived, and reads the body if it wants it. An exception of the
// handler becomes a 500 and a line in the log; one request never ends the process.
//
// Threads: thread-safe.
// Errors:  listen(): the errors of the address.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/http/http_exchange.h"
#include "server/http/http_limits.h"

namespace slipstream {

struct HttpOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any free port
  int listener = -1;          // a listening socket to take over, instead of host and port
  int n_threads = 2;
  HttpLimits limits = kHttpLimits;
  std::chrono::seconds header_time_max{10};  // from the first byte
  std::chrono::seconds body_time_max{60};
  std::chrono::milliseconds body_wait_max{5000};  // for room beside other bodies
  std::chrono::seconds write_time_max{60};        // without progress
  std::chrono::milliseconds silence_max{15000};   // of a stream, before it sends a ping
  std::chrono::seconds idle_time_max{120};        // between two requests
};

class HttpServer {
 public:
  using Handler = std::function<boost::asio::awaitable<void>(HttpExchange&)>;
  // Makes the body of an answer from the server itself: 400, 408, 413, 431, 500.
  using ErrorBody = std::function<std::string(int status, std::string_view message)>;

  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> listen(const HttpOptions& options,
                                                                  Handler handler,
                                                                  ErrorBody error_body);
  // Calls stop().
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::string address() const;  // "127.0.0.1:8080"

  // Stops accepting and lets answers in progress end until the time is up. Returns
  // whether all ended.
  bool drain(std::chrono::milliseconds time_max);

  // Closes every connection and waits for their handlers. Afterwards, what the handlers use may be
  // destroyed. Signals may still be notified until the server itself is destroyed.
  void stop();

  [[nodiscard]] int n_connections() const;
  [[nodiscard]] int n_exchanges() const;           // requests being answered
  [[nodiscard]] std::size_t n_body_bytes() const;  // of these requests, without the free bytes

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace slipstream
