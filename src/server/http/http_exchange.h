// HttpExchange: one request and the answer to it, as a handler sees them.
//
// A handler sees the header first, and asks for the body if it wants it: who may not ask is refused
// before a byte of it is kept. It answers once: reply(), or begin_stream(), send() as often as it
// likes, end_stream(). Every call that returns false says that the client has gone: the handler
// ends what it does for it.
//
// Threads: on the connection's executor. Errors: none but the client's absence.
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

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<HttpHeader> headers = {};
};

// Why a request could not be read.
struct HttpProblem {
  int status;  // 0: nobody is there to be told
  std::string message;
};
[[nodiscard]] HttpProblem problem_of(const boost::system::error_code& error);

class HttpExchange {
 public:
  // What the server knows and the handler may want.
  struct Facts {
    std::string id;  // of the request, from the client or made here
    std::chrono::seconds body_time_max;
    std::chrono::seconds write_time_max;
    std::chrono::milliseconds silence_max;
    std::size_t ahead_bytes_max;
    BodyBudget& bodies;
  };
  // What the connection reads with: a parser that has the header, and the bytes behind it.
  struct Input {
    boost::beast::flat_buffer& buffer;
    HttpParser& parser;
  };
  HttpExchange(boost::beast::tcp_stream& stream, Input input, Facts facts);

  // Without its body, until read_body().
  [[nodiscard]] const HttpRequest& request() const { return input_.parser.get(); }
  // One that is longer than this is a 413, one that finds no room beside those of others a 503.
  boost::asio::awaitable<std::optional<HttpProblem>> read_body(std::size_t bytes_max = SIZE_MAX);
  // It is not needed any more: others may have its room.
  void drop_body();
  [[nodiscard]] std::string_view path() const;  // of the target, without a query
  [[nodiscard]] const std::string& id() const { return facts_.id; }
  // Whole: a client that sends slowly does not look like a server that answers slowly.
  [[nodiscard]] std::chrono::steady_clock::time_point arrived() const { return arrived_; }
  [[nodiscard]] boost::asio::any_io_executor executor() { return stream_.get_executor(); }

  // For the log: a name, never a key.
  void set_client(std::string name) { client_ = std::move(name); }
  [[nodiscard]] std::string_view client() const { return client_; }

  // To the answer, whatever it will be.
  void add_header(std::string name, std::string value) {
    headers_.emplace_back(std::move(name), std::move(value));
  }
  boost::asio::awaitable<bool> reply(HttpReply reply);
  boost::asio::awaitable<bool> begin_stream(HttpReply head);
  boost::asio::awaitable<bool> send(std::string_view bytes);
  boost::asio::awaitable<bool> end_stream();

  // Not known to have gone, asked between two pieces of long work. What it has sent meanwhile is
  // kept for its next request; a client that sends too much of it is as good as gone.
  [[nodiscard]] bool is_client_there();
  // Until the signal is given, the time is up (true) or the client has gone.
  boost::asio::awaitable<bool> wait(
      Signal& signal, std::chrono::steady_clock::duration time_max = Signal::kForever);
  // A stream that has nothing to send for so long says that it is there: clients give up on silence.
  [[nodiscard]] std::chrono::milliseconds silence_max() const { return facts_.silence_max; }

  // The connection is being closed under the handler.
  void abandon();

  // This answer is the last of its connection.
  void close_after() { is_last_ = true; }
  // Whether another request may follow: not behind a body that nobody read.
  [[nodiscard]] bool keeps_open() const {
    return !is_last_ && input_.parser.is_done() && request().keep_alive();
  }

  // For the log, and for what to do with the connection afterwards.
  [[nodiscard]] int status() const { return status_; }  // 0: not answered
  // The same where all is over: 499 if the client did not wait for an answer.
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
  bool is_answered_ = false;  // to the end
  bool is_gone_ = false;
  bool is_last_ = false;
  bool is_chunked_ = true;  // a stream: HTTP/1.0 has no chunks, its end is that of the connection
  Signal* waits_for_ = nullptr;
};

}  // namespace slipstream
