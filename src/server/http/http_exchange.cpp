#include "server/http/http_exchange.h"

#include <sys/socket.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include "base/check.h"
#include "server/http/await.h"

namespace slipstream {

namespace asio = boost::asio;
namespace http = boost::beast::http;

// The problem with a request that could not be read. The status is 0 if nobody can be answered.
HttpProblem problem_of(const boost::system::error_code& error) {
  const auto status = [&error] {
    if (error == http::error::body_limit) return 413;
    if (error == http::error::header_limit || error == http::error::buffer_overflow) return 431;
    if (error == boost::beast::error::timeout) return 408;
    if (error == http::error::end_of_stream || error == http::error::partial_message) return 0;
    return error.category() == http::make_error_code(http::error::bad_version).category() ? 400 : 0;
  };
  return {.status = status(), .message = error.message()};
}

HttpExchange::HttpExchange(boost::beast::tcp_stream& stream, Input input, Facts facts)
    : stream_(stream),
      input_(input),
      facts_(std::move(facts)),
      notice_(stream.socket().native_handle()) {
  add_header("X-Request-Id", facts_.id);
}

std::string_view HttpExchange::path() const {
  const std::string_view target = request().target();
  return target.substr(0, target.find('?'));
}

// A client may wait for this before it sends the body.
asio::awaitable<std::optional<HttpProblem>> HttpExchange::ask_for_body() {
  if (!boost::beast::iequals(request()[http::field::expect], "100-continue")) {
    co_return std::nullopt;
  }
  set_timeout();
  const http::response<http::empty_body> go_on(http::status::continue_, 11);
  const auto [error, n] = co_await http::async_write(stream_, go_on, kAwait);
  if (!note(error, n)) co_return problem_of(error);
  co_return std::nullopt;
}

asio::awaitable<std::optional<HttpProblem>> HttpExchange::read_body(std::size_t bytes_max) {
  HttpParser& parser = input_.parser;
  if (parser.is_done()) co_return std::nullopt;
  if (parser.content_length().value_or(0) > bytes_max) {
    co_return problem_of(http::make_error_code(http::error::body_limit));
  }
  if (auto problem = co_await ask_for_body()) co_return problem;
  parser.eager(true);
  stream_.expires_after(facts_.body_time_max);  // for the whole body
  while (!parser.is_done()) {
    const auto [error, n] = co_await http::async_read_some(stream_, input_.buffer, parser, kAwait);
    arrived_ = std::chrono::steady_clock::now();
    const std::size_t n_bytes = parser.get().body().size();
    if (error || n_bytes > bytes_max) {
      HttpProblem problem = problem_of(error ? error : http::error::body_limit);
      is_gone_ = is_gone_ || problem.status == 0;
      co_return problem;
    }
    if (!co_await body_share_.grow_to(n_bytes, executor())) {
      co_return HttpProblem{
          .status = 503,
          .message = "The server is reading as many large requests as it may: try again soon"};
    }
  }
  body_share_.stop_growing();
  co_return std::nullopt;
}

void HttpExchange::drop_body() {
  input_.parser.get().body() = std::string();
  body_share_.release();
}

template <typename Body>
http::response<Body> HttpExchange::make_response(const HttpReply& reply) const {
  http::response<Body> response(static_cast<http::status>(reply.status), request().version());
  response.set(http::field::server, "slipstream");
  response.set(http::field::content_type, reply.content_type);
  for (const auto& [name, value] : headers_) response.set(name, value);
  for (const auto& [name, value] : reply.headers) response.set(name, value);
  response.keep_alive(keeps_open());
  return response;
}

asio::awaitable<bool> HttpExchange::reply(HttpReply reply) {
  SLIP_CHECK(status_ == 0, "a request is answered twice");
  status_ = reply.status;
  notice_.say_nothing();
  set_timeout();
  if (request().method() == http::verb::head) {  // as for GET, without the body
    auto head = make_response<http::empty_body>(reply);
    head.content_length(reply.body.size());
    const auto [error, n] = co_await http::async_write(stream_, head, kAwait);
    co_return is_answered_ = note(error, n);
  }
  auto response = make_response<http::string_body>(reply);
  response.body() = std::move(reply.body);
  response.prepare_payload();
  const auto [error, n] = co_await http::async_write(stream_, response, kAwait);
  co_return is_answered_ = note(error, n);
}

asio::awaitable<bool> HttpExchange::begin_stream(HttpReply head) {
  SLIP_CHECK(status_ == 0, "a request is answered twice");
  status_ = head.status;
  is_chunked_ = request().version() >= 11;
  is_last_ = is_last_ || !is_chunked_;
  if (head.content_type == kJsonLines) stream_form_ = CrashNotice::Stream::kLines;
  auto response = make_response<http::empty_body>(head);
  response.chunked(is_chunked_);
  http::response_serializer<http::empty_body> serializer(response);
  set_timeout();
  notice_.say_nothing();
  const auto [error, n] = co_await http::async_write_header(stream_, serializer, kAwait);
  co_return note_sent(error, n);
}

asio::awaitable<bool> HttpExchange::send(std::string_view bytes) {
  if (is_gone_ || bytes.empty()) co_return !is_gone_;  // an empty chunk would end the stream
  set_timeout();
  notice_.say_nothing();
  if (!is_chunked_) {
    const auto [error, n] = co_await asio::async_write(stream_, asio::buffer(bytes), kAwait);
    co_return note_sent(error, n);
  }
  const auto chunk = http::make_chunk(asio::buffer(bytes));
  const auto [error, n] = co_await asio::async_write(stream_, chunk, kAwait);
  co_return note_sent(error, n);
}

asio::awaitable<bool> HttpExchange::end_stream() {
  if (is_gone_) co_return false;
  notice_.say_nothing();
  if (!is_chunked_) co_return is_answered_ = true;
  set_timeout();
  const auto [error, n] = co_await asio::async_write(stream_, http::make_chunk_last(), kAwait);
  co_return is_answered_ = note(error, n);
}

asio::awaitable<bool> HttpExchange::wait(Signal& signal,
                                         std::chrono::steady_clock::duration time_max) {
  using asio::experimental::awaitable_operators::operator||;
  if (is_gone_) co_return false;
  stream_.expires_never();  // computing may take any time
  waits_for_ = &signal;
  co_await (signal.wait(time_max) || watch());
  waits_for_ = nullptr;
  co_return !is_gone_;
}

void HttpExchange::abandon() {
  is_gone_ = true;
  if (waits_for_ != nullptr) waits_for_->notify();
}

// Ends when the client closes the connection. Otherwise it runs until the other side
// of wait() ends.
asio::awaitable<void> HttpExchange::watch() {
  auto& socket = stream_.socket();
  while (is_client_there()) {
    const auto [error] = co_await socket.async_wait(asio::ip::tcp::socket::wait_read, kAwait);
    if (error == asio::error::operation_aborted) co_return;
    is_gone_ = is_gone_ || error.failed();
  }
}

// The bytes are read, not only peeked at: the end of a connection is not seen behind unread bytes.
bool HttpExchange::is_client_there() {
  constexpr std::size_t kPiece = 4096;
  while (!is_gone_) {
    if (input_.buffer.size() > facts_.ahead_bytes_max) {
      is_gone_ = true;
      break;
    }
    const auto room = input_.buffer.prepare(kPiece);
    const auto n = ::recv(stream_.socket().native_handle(), room.data(), room.size(), MSG_DONTWAIT);
    if (n > 0) {
      input_.buffer.commit(static_cast<std::size_t>(n));
      continue;
    }
    const bool has_nothing = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    is_gone_ = !has_nothing;
    break;
  }
  return !is_gone_;
}

void HttpExchange::set_timeout() { stream_.expires_after(facts_.write_time_max); }

bool HttpExchange::note(const boost::system::error_code& error, std::size_t n_bytes) {
  n_bytes_ += n_bytes;
  is_gone_ = is_gone_ || error.failed();
  return !is_gone_;
}

// Notes that a piece of a stream was sent.
bool HttpExchange::note_sent(const boost::system::error_code& error, std::size_t n_bytes) {
  if (note(error, n_bytes)) notice_.say_event(stream_form_, is_chunked_);
  return !is_gone_;
}

}  // namespace slipstream
