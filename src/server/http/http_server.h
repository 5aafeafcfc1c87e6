// HttpServer: HTTP/1.1 on one address. Each connection is a coroutine; a few threads run them all.
//
// What a client can do to it is bounded (Limits, HttpOptions): sizes of header and body, the time
// for each, for reading an answer and between two requests, what it sends before it is answered,
// the number of connections, and what the bodies of all have together. A handler is asked when the
// header is there, and reads the body if it wants it. What it throws is a 500 and a line in the
// log; one request never ends the process.
//
// Threads: thread-safe. Errors: listen(): as of the address.
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
  std::uint16_t port = 8080;  // 0: any that is free
  int listener = -1;          // a socket that listens already, taken over; instead of host and port
  int n_threads = 2;
  HttpLimits limits = kHttpLimits;
  std::chrono::seconds header_time_max{10};  // from its first byte
  std::chrono::seconds body_time_max{60};
  std::chrono::milliseconds body_wait_max{5000};  // for room beside the bodies of others
  std::chrono::seconds write_time_max{60};        // without progress
  std::chrono::milliseconds silence_max{15000};   // of a stream, before it sends a ping
  std::chrono::seconds idle_time_max{120};        // between two requests
};

class HttpServer {
 public:
  using Handler = std::function<boost::asio::awaitable<void>(HttpExchange&)>;
  // The body of an answer that the server makes itself: 400, 408, 413, 431, 500.
  using ErrorBody = std::function<std::string(int status, std::string_view message)>;

  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> listen(const HttpOptions& options,
                                                                  Handler handler,
                                                                  ErrorBody error_body);
  // stop(), and every connection is closed.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::string address() const;  // "127.0.0.1:8080"

  // Accepts nothing more and lets answers in progress end, until the time is up. Whether all did.
  bool drain(std::chrono::milliseconds time_max);

  // Closes every connection and waits for their handlers. What handlers use may then be destroyed;
  // Signals can still be given until the server itself is.
  void stop();

  [[nodiscard]] int n_connections() const;
  [[nodiscard]] int n_exchanges() const;           // requests being answered
  [[nodiscard]] std::size_t n_body_bytes() const;  // of them, but for what is free

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace slipstream
