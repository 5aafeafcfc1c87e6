// HttpExchange: one request and its answer, as a handler sees them.
//
// A handler sees the header first and then asks for the body if it wants it. So a client without
// permission is refused before a byte of the body is kept. The handler answers once: with reply(),
// or with begin_stream(), any number of send(), and end_stream(). A call that returns false says
// that the client has gone: the handler then ends its work for the client.
//
// Threads: on the connection's executor.
// Errors:  none except that the client has gone.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/body_budget.h"
#include "server/http/crash_notice.h"
#include "server/http/signal.h"

namespace slipstream {

using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;
using HttpParser = boost::beast::http::request_parser<boost::beast::http::string_body>;
using HttpHeader = std::pair<std::string, std::string>;

// Of a stream whose events are lines of JSON.
inline constexpr std::string_view kJsonLines = "application/x-ndjson";

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<HttpHeader> headers = {};
};

// Why a request could not be read.
struct HttpProblem {
  int status;  // 0: there is nobody to tell
  std::string message;
};
[[nodiscard]] HttpProblem problem_of(const boost::system::error_code& error);

class HttpExchange {
 public:
  // What the server knows and the handler may need.
  struct Facts {
    std::string id;  // the request's id, from the client or made here
    std::chrono::seconds body_time_max;
    std::chrono::seconds write_time_max;
    std::chrono::milliseconds silence_max;
    std::size_t ahead_bytes_max;
    BodyBudget& bodies;
  };
  // What the connection reads with: a parser that has the header, and the bytes after it.
  struct Input {
    boost::beast::flat_buffer& buffer;
    HttpParser& parser;
  };
  HttpExchange(boost::beast::tcp_stream& stream, Input input, Facts facts);

  // The body is missing until read_body().
  [[nodiscard]] const HttpRequest& request() const { return input_.parser.get(); }
  // A body longer than this is a 413. A body without room beside those of other requests is a 503.
  boost::asio::awaitable<std::optional<HttpProblem>> read_body(std::size_t bytes_max = SIZE_MAX);
  // The body is no longer needed. Its room is released for others.
  void drop_body();
  [[nodiscard]] std::string_view path() const;  // of the target, without the query
  [[nodiscard]] const std::string& id() const { return facts_.id; }
  // When the whole request had arrived, so that a slow client does not look like a slow server.
  [[nodiscard]] std::chrono::steady_clock::time_point arrived() const { return arrived_; }
  [[nodiscard]] boost::asio::any_io_executor executor() { return stream_.get_executor(); }

  // The client's name for the log, never a key.
  void set_client(std::string name) { client_ = std::move(name); }
  [[nodiscard]] std::string_view client() const { return client_; }

  // Adds a header to the answer, whatever the answer will be.
  void add_header(std::string name, std::string value) {
    headers_.emplace_back(std::move(name), std::move(value));
  }
  boost::asio::awaitable<bool> reply(HttpReply reply);
  boost::asio::awaitable<bool> begin_stream(HttpReply head);
  boost::asio::awaitable<bool> send(std::string_view bytes);
  boost::asio::awaitable<bool> end_stream();

  // Whether the client is not known to have gone. Call this between two pieces of long work. Bytes
  // that the client has sent meanwhile are kept for its next request. A client that sends too many
  // is treated as gone.
  [[nodiscard]] bool is_client_there();
  // Waits until the signal is given or the time is up (true), or the client has gone (false).
  boost::asio::awaitable<bool> wait(
      Signal& signal, std::chrono::steady_clock::duration time_max = Signal::kForever);
  // A stream that is silent for this long sends a ping: clients give up on silence.
  [[nodiscard]] std::chrono::milliseconds silence_max() const { return facts_.silence_max; }

  // Tells the handler's exchange that the connection is being closed.
  void abandon();

  // Makes this answer the last one of its connection.
  void close_after() { is_last_ = true; }
  // Whether another request may follow. After a body that was not read, none may.
  [[nodiscard]] bool keeps_open() const {
    return !is_last_ && input_.parser.is_done() && request().keep_alive();
  }

  // For the log, and for deciding what happens to the connection afterwards.
  [[nodiscard]] int status() const { return status_; }  // 0: not answered
  // The status once the exchange is over: 499 if the client did not wait for an answer.
  [[nodiscard]] int outcome() const { return is_gone_ && status_ == 0 ? 499 : status_; }
  [[nodiscard]] std::size_t n_bytes() const { return n_bytes_; }
  [[nodiscard]] bool is_answered() const { return is_answered_; }
  [[nodiscard]] bool is_gone() const { return is_gone_; }

 private:
  boost::asio::awaitable<void> watch();
  boost::asio::awaitable<std::optional<HttpProblem>> ask_for_body();
  template <typename Body>
  boost::beast::http::response<Body> make_response(const HttpReply& reply) const;
  void set_timeout();
  [[nodiscard]] bool note(const boost::system::error_code& error, std::size_t n_bytes);
  [[nodiscard]] bool note_sent(const boost::system::error_code& error, std::size_t n_bytes);

  boost::beast::tcp_stream& stream_;
  const Input input_;
  const Facts facts_;
  const CrashNotice notice_;
  BodyBudget::Share body_share_{facts_.bodies};
  std::chrono::steady_clock::time_point arrived_ = std::chrono::steady_clock::now();
  std::string client_ = "-";
  std::vector<HttpHeader> headers_ = {};
  int status_ = 0;
  std::size_t n_bytes_ = 0;
  bool is_answered_ = false;  // completely
  bool is_gone_ = false;
  bool is_last_ = false;
  CrashNotice::Stream stream_form_ = CrashNotice::Stream::kEvents;
  bool is_chunked_ = true;  // for a stream; HTTP/1.0 has no chunks, so it ends with the connection
  Signal* waits_for_ = nullptr;
};

}  // namespace slipstream
