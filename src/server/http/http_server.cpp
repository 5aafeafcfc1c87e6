#include "server/http/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <condition_variable>
#include <list>
#include <random>
#include <thread>
#include <vector>

#include "base/format.h"
#include "base/log.h"
#include "base/mutex.h"
#include "server/http/await.h"
#include "server/http/listener.h"

namespace slipstream {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

namespace {

// The client's own id is written to logs and sent back, so it must be short and must not
// break a line.
bool is_request_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 &&
         std::ranges::all_of(id, [](char c) { return c > ' ' && c < 127 && c != '"'; });
}

std::uint64_t random_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

std::string message_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of an unknown kind";
  }
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpOptions& options, Handler handler, ErrorBody error_body)
      : options_(options), handler_(std::move(handler)), error_body_(std::move(error_body)) {}

  Result<void> listen() {
    UniqueFd listener(options_.listener);
    if (!listener) {
      Result<UniqueFd> opened = open_listener(options_.host, options_.port);
      if (!opened) return std::unexpected(opened.error());
      listener = std::move(*opened);
    }
    sockaddr_storage address{};
    socklen_t n_bytes = sizeof(address);
    const bool has_address =
        getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &n_bytes) == 0;
    if (!has_address || (address.ss_family != AF_INET && address.ss_family != AF_INET6)) {
      return fail(Code::kInvalidArgument, "what was handed over is no socket of TCP");
    }
    beast::error_code error;
    const tcp protocol = address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4();
    if (acceptor_.assign(protocol, listener.release(), error); error) {
      return fail_errno(error.value(), "cannot accept connections");
    }
    endpoint_ = acceptor_.local_endpoint(error);
    keep_accepting();
    for (int i = 0; i < options_.n_threads; ++i) {
      threads_.emplace_back([this] { run_connections(); });
    }
    return {};
  }

  // Coroutines run to their end, so that nothing of a handler is left behind.
  void stop() {
    if (threads_.empty()) return;
    stop_accepting();
    for_each_connection([](Connection& connection) { connection.close(); });
    while (n_connections() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    io_.stop();
    threads_.clear();  // joins
  }

  bool drain(std::chrono::milliseconds time_max) {
    stop_accepting();
    for_each_connection([](Connection& connection) { connection.close_if_idle(); });
    const auto end = std::chrono::steady_clock::now() + time_max;
    while (n_exchanges_ > 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return n_exchanges_ == 0;
  }

  [[nodiscard]] tcp::endpoint endpoint() const { return endpoint_; }
  [[nodiscard]] int n_connections() const {
    const MutexLock lock(mutex_);
    return static_cast<int>(connections_.size());
  }
  [[nodiscard]] int n_exchanges() const { return n_exchanges_; }
  [[nodiscard]] std::size_t n_body_bytes() const { return bodies_.n_taken(); }

 private:
  // An exception from a coroutine's completion, such as bad_alloc, does not end other connections.
  void run_connections() {
    while (true) {
      try {
        io_.run();
        return;
      } catch (...) {
        log::error("http.thread", {{"error", message_of(std::current_exception())}});
      }
    }
  }

  // Accepting continues whatever one connection throws.
  void keep_accepting() {
    asio::co_spawn(acceptor_.get_executor(), accept(), [this](const std::exception_ptr& failure) {
      if (!failure || is_draining_) return;
      log::error("http.accept", {{"error", message_of(failure)}});
      keep_accepting();
    });
  }

  void stop_accepting() {
    is_draining_ = true;
    asio::post(acceptor_.get_executor(), [this] { acceptor_.close(); });
  }

  // Counts while it lives, so that a number is right again after an exception too.
  class Counted {
   public:
    explicit Counted(std::atomic<int>& number) : number_(number) { ++number_; }
    ~Counted() { --number_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

   private:
    std::atomic<int>& number_;
  };

  class Connection : public std::enable_shared_from_this<Connection> {
   public:
    Connection(Impl& server, tcp::socket socket) : server_(server), stream_(std::move(socket)) {}

    // `self` keeps the connection alive, because the coroutine's frame needs it to the end.
    asio::awaitable<void> run(std::shared_ptr<Connection> /*self*/) {
      while (co_await read_and_answer()) {
      }
      beast::error_code error;
      if (has_unread_) co_await discard_input();
      if (stream_.socket().shutdown(tcp::socket::shutdown_both, error); error) {
        log::debug("http.shutdown", {{"error", error.message()}});  // it was gone already
      }
    }

    [[nodiscard]] asio::any_io_executor executor() { return stream_.get_executor(); }

    void close_if_idle() {
      asio::post(executor(), [self = shared_from_this()] {
        if (self->is_idle_) self->stream_.cancel();
      });
    }
    void close() {
      asio::post(executor(), [self = shared_from_this()] {
        if (self->exchange_ != nullptr) self->exchange_->abandon();
        self->stream_.close();
      });
    }

   private:
    // Returns false if the connection ends.
    asio::awaitable<bool> read_and_answer() {
      if (!co_await wait_for_request()) co_return false;
      HttpParser parser;
      parser.header_limit(
          static_cast<std::uint32_t>(server_.options_.limits.http_header_bytes_max));
      parser.body_limit(server_.options_.limits.http_body_bytes_max);
      stream_.expires_after(server_.options_.header_time_max);
      const auto [error, n] = co_await http::async_read_header(stream_, buffer_, parser, kAwait);
      const bool goes_on = error ? co_await refuse(error, parser) : co_await answer(parser);
      has_unread_ = error || !parser.is_done();
      co_return goes_on;
    }

    // Closing a connection with unread input resets it, and the answer is lost. A client that sends
    // everything before it reads would never see why it was refused.
    asio::awaitable<void> discard_input() {
      constexpr std::chrono::seconds kTimeMax(2);
      beast::error_code error;
      if (stream_.socket().shutdown(tcp::socket::shutdown_send, error); error) co_return;
      buffer_.clear();
      stream_.expires_after(kTimeMax);
      for (std::size_t n_left = server_.options_.limits.http_body_bytes_max; n_left > 0;) {
        const auto [failure, n] = co_await stream_.async_read_some(buffer_.prepare(65536), kAwait);
        if (failure) co_return;
        n_left -= std::min(n_left, n);
      }
    }

    asio::awaitable<bool> wait_for_request() {
      if (server_.is_draining_) co_return false;
      if (buffer_.size() > 0) co_return true;  // the client has already sent the next request
      is_idle_ = true;
      stream_.expires_after(server_.options_.idle_time_max);
      const auto [error, n] = co_await stream_.async_read_some(buffer_.prepare(4096), kAwait);
      is_idle_ = false;
      buffer_.commit(n);
      co_return !error;
    }

    asio::awaitable<bool> refuse(const beast::error_code& error, HttpParser& parser) {
      const HttpProblem problem = problem_of(error);
      if (problem.status == 0) co_return false;
      HttpExchange exchange(stream_, {buffer_, parser}, facts_for(parser.get()));
      log::info("http.refused", {{"status", problem.status}, {"error", problem.message}},
                exchange.id());
      exchange.close_after();
      (void)co_await exchange.reply(
          {.status = problem.status, .body = server_.error_body_(problem.status, problem.message)});
      co_return false;
    }

    asio::awaitable<bool> answer(HttpParser& parser) {
      HttpExchange exchange(stream_, {buffer_, parser}, facts_for(parser.get()));
      co_await handle(exchange);
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - exchange.arrived();
      log::info("http.request",
                {{"method", std::string_view(parser.get().method_string())},
                 {"path", exchange.path()},
                 {"client", exchange.client()},
                 {"status", exchange.outcome()},
                 {"bytes", exchange.n_bytes()},
                 {"took_ms", took.count()}},
                exchange.id());
      co_return exchange.is_answered() && exchange.keeps_open();
    }

    asio::awaitable<void> handle(HttpExchange& exchange) {
      const Counted counted(server_.n_exchanges_);
      exchange_ = &exchange;
      std::string failure;
      try {
        co_await server_.handler_(exchange);
      } catch (...) {
        failure = message_of(std::current_exception());
      }
      exchange_ = nullptr;
      if (failure.empty()) co_return;
      log::error("http.handler", {{"error", failure}}, exchange.id());
      if (exchange.status() == 0 && !exchange.is_gone()) {
        (void)co_await exchange.reply(
            {.status = 500, .body = server_.error_body_(500, "an internal error; see the log")});
      }
    }

    [[nodiscard]] HttpExchange::Facts facts_for(const HttpRequest& request) const {
      std::string id(request["X-Request-Id"]);
      if (!is_request_id(id)) id = server_.next_id();
      return {.id = id,
              .body_time_max = server_.options_.body_time_max,
              .write_time_max = server_.options_.write_time_max,
              .silence_max = server_.options_.silence_max,
              .ahead_bytes_max = server_.options_.limits.http_ahead_bytes_max,
              .bodies = server_.bodies_};
    }

    Impl& server_;
    beast::tcp_stream stream_;
    beast::flat_buffer buffer_;
    bool is_idle_ = false;
    bool has_unread_ = false;           // of a body that the handler did not read
    HttpExchange* exchange_ = nullptr;  // while a handler runs
  };

  asio::awaitable<void> accept() {
    while (!is_draining_) {
      tcp::socket socket(asio::make_strand(io_));
      const auto [error] = co_await acceptor_.async_accept(socket, kAwait);
      if (error == asio::error::operation_aborted || is_draining_) co_return;
      if (error) {
        // For example, there are too many open files: other connections may close theirs.
        log::warn("http.accept", {{"error", error.message()}});
        asio::steady_timer pause(io_, std::chrono::milliseconds(100));
        co_await pause.async_wait(kAwait);
        continue;
      }
      if (n_connections() >= static_cast<int>(options_.limits.http_connections_max)) {
        turn_away(socket);
        continue;
      }
      beast::error_code delays;
      if (socket.set_option(tcp::no_delay(true), delays); delays) {  // a token is sent immediately
        log::debug("http.no_delay", {{"error", delays.message()}});
      }
      const auto connection = std::make_shared<Connection>(*this, std::move(socket));
      const auto place = enter(connection);
      try {
        asio::co_spawn(connection->executor(), connection->run(connection),
                       [this, place](const std::exception_ptr&) { leave(place); });
      } catch (...) {
        leave(place);
        throw;
      }
    }
  }

  static void turn_away(tcp::socket& socket) {
    constexpr std::string_view kAnswer =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
        "Connection: close\r\n\r\n";
    (void)::send(socket.native_handle(), kAnswer.data(), kAnswer.size(),
                 MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  using Connections = std::list<std::shared_ptr<Connection>>;
  Connections::iterator enter(std::shared_ptr<Connection> connection) {
    const MutexLock lock(mutex_);
    return connections_.insert(connections_.end(), std::move(connection));
  }
  template <typename Visit>
  void for_each_connection(Visit visit) {
    const MutexLock lock(mutex_);
    for (const auto& connection : connections_) visit(*connection);
  }
  void leave(Connections::iterator place) {
    const MutexLock lock(mutex_);
    connections_.erase(place);
  }

  std::string next_id() { return format_text("{:x}-{}", run_id_, ++n_ids_); }

  const HttpOptions options_;
  const Handler handler_;
  const ErrorBody error_body_;
  const std::uint64_t run_id_ = random_number();
  std::atomic<std::uint64_t> n_ids_ = 0;
  std::atomic<int> n_exchanges_ = 0;
  std::atomic<bool> is_draining_ = false;
  BodyBudget bodies_{{.bytes_max = options_.limits.http_bodies_bytes_max,
                      .body_bytes_max = options_.limits.http_body_bytes_max,
                      .free_bytes = options_.limits.http_free_body_bytes,
                      .wait_max = options_.body_wait_max}};
  asio::io_context io_;
  tcp::acceptor acceptor_{asio::make_strand(io_)};
  tcp::endpoint endpoint_;
  mutable Mutex mutex_;
  Connections connections_ SLIP_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// Only a fatal error throws here. Then the process may end.
// NOLINTNEXTLINE(bugprone-exception-escape)
HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const HttpOptions& options, Handler handler,
                                                       ErrorBody error_body) {
  auto impl = std::make_unique<Impl>(options, std::move(handler), std::move(error_body));
  if (const Result<void> listening = impl->listen(); !listening) {
    return std::unexpected(listening.error());
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

bool HttpServer::drain(std::chrono::milliseconds time_max) { return impl_->drain(time_max); }
void HttpServer::stop() { impl_->stop(); }
std::uint16_t HttpServer::port() const { return impl_->endpoint().port(); }
std::string HttpServer::address() const {
  const tcp::endpoint at = impl_->endpoint();
  const std::string host = at.address().to_string();
  return at.address().is_v6() ? format_text("[{}]:{}", host, at.port())
                              : format_text("{}:{}", host, at.port());
}
int HttpServer::n_connections() const { return impl_->n_connections(); }
int HttpServer::n_exchanges() const { return impl_->n_exchanges(); }
std::size_t HttpServer::n_body_bytes() const { return impl_->n_body_bytes(); }

}  // namespace slipstream
