// HttpExchange: one request and the answer to it, as a handler sees them.
//
// A handler answers once: reply(), or begin_stream(), send() as often as it likes, end_stream().
// Every call that returns false says that the client has gone: the handler ends what it does for
// it.
//
// Threads: on the connection's executor. Errors: none but the client's absence.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/signal.h"

namespace slipstream {

using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;
using HttpHeader = std::pair<std::string, std::string>;

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<HttpHeader> headers = {};
};

class HttpExchange {
 public:
  // What the server knows and the handler may want.
  struct Facts {
    std::string id;  // of the request, from the client or made here
    std::chrono::seconds write_time_max;
  };
  HttpExchange(boost::beast::tcp_stream& stream, const HttpRequest& request, Facts facts);

  [[nodiscard]] const HttpRequest& request() const { return request_; }
  [[nodiscard]] std::string_view path() const;  // of the target, without a query
  [[nodiscard]] const std::string& id() const { return facts_.id; }
  [[nodiscard]] std::chrono::steady_clock::time_point arrived() const { return arrived_; }
  [[nodiscard]] boost::asio::any_io_executor executor() { return stream_.get_executor(); }

  // To the answer, whatever it will be.
  void add_header(std::string name, std::string value) {
    headers_.emplace_back(std::move(name), std::move(value));
  }
  boost::asio::awaitable<bool> reply(HttpReply reply);
  boost::asio::awaitable<bool> begin_stream(HttpReply head);
  boost::asio::awaitable<bool> send(std::string_view bytes);
  boost::asio::awaitable<bool> end_stream();

  // Not known to have gone, asked between two pieces of long work.
  [[nodiscard]] bool is_client_there();
  // Until the signal is given (true) or the client has gone.
  boost::asio::awaitable<bool> wait(Signal& signal);

  // The connection is being closed under the handler.
  void abandon();

  // For the log, and for what to do with the connection afterwards.
  [[nodiscard]] int status() const { return status_; }  // 0: not answered
  // The same where all is over: 499 if the client did not wait for an answer.
  [[nodiscard]] int outcome() const { return is_gone_ && status_ == 0 ? 499 : status_; }
  [[nodiscard]] std::size_t n_bytes() const { return n_bytes_; }
  [[nodiscard]] bool is_answered() const { return is_answered_; }
  [[nodiscard]] bool is_gone() const { return is_gone_; }

 private:
  boost::asio::awaitable<void> watch();
  void set_timeout();
  [[nodiscard]] bool note(const boost::system::error_code& error, std::size_t n_bytes);

  boost::beast::tcp_stream& stream_;
  const HttpRequest& request_;
  const Facts facts_;
  const std::chrono::steady_clock::time_point arrived_ = std::chrono::steady_clock::now();
  std::vector<HttpHeader> headers_ = {};
  int status_ = 0;
  std::size_t n_bytes_ = 0;
  bool is_answered_ = false;  // to the end
  bool is_gone_ = false;
  bool has_more_input_ = false;  // the client has sent its next request already
  Signal* waits_for_ = nullptr;
};

}  // namespace slipstream
