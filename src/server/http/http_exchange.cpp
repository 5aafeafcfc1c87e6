#include "server/http/http_exchange.h"

#include <sys/socket.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/write.hpp>

#include "base/check.h"
#include "server/http/await.h"

namespace slipstream {

namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {

template <typename Body>
http::response<Body> make_response(const HttpRequest& request, const HttpReply& reply,
                                   const std::vector<HttpHeader>& headers) {
  http::response<Body> response(static_cast<http::status>(reply.status), request.version());
  response.set(http::field::server, "slipstream");
  response.set(http::field::content_type, reply.content_type);
  for (const auto& [name, value] : headers) response.set(name, value);
  for (const auto& [name, value] : reply.headers) response.set(name, value);
  response.keep_alive(request.keep_alive());
  return response;
}

}  // namespace

HttpExchange::HttpExchange(boost::beast::tcp_stream& stream, const HttpRequest& request,
                           Facts facts)
    : stream_(stream), request_(request), facts_(std::move(facts)) {
  add_header("X-Request-Id", facts_.id);
}

std::string_view HttpExchange::path() const {
  const std::string_view target = request_.target();
  return target.substr(0, target.find('?'));
}

asio::awaitable<bool> HttpExchange::reply(HttpReply reply) {
  SLIP_CHECK(status_ == 0, "a request is answered twice");
  status_ = reply.status;
  auto response = make_response<http::string_body>(request_, reply, headers_);
  response.body() = std::move(reply.body);
  response.prepare_payload();
  set_timeout();
  const auto [error, n] = co_await http::async_write(stream_, response, kAwait);
  is_answered_ = note(error, n);
  co_return is_answered_;
}

asio::awaitable<bool> HttpExchange::begin_stream(HttpReply head) {
  SLIP_CHECK(status_ == 0, "a request is answered twice");
  status_ = head.status;
  auto response = make_response<http::empty_body>(request_, head, headers_);
  response.chunked(true);
  http::response_serializer<http::empty_body> serializer(response);
  set_timeout();
  const auto [error, n] = co_await http::async_write_header(stream_, serializer, kAwait);
  co_return note(error, n);
}

asio::awaitable<bool> HttpExchange::send(std::string_view bytes) {
  if (is_gone_ || bytes.empty()) co_return !is_gone_;  // an empty chunk would end the stream
  set_timeout();
  const auto chunk = http::make_chunk(asio::buffer(bytes));
  const auto [error, n] = co_await asio::async_write(stream_, chunk, kAwait);
  co_return note(error, n);
}

asio::awaitable<bool> HttpExchange::end_stream() {
  if (is_gone_) co_return false;
  set_timeout();
  const auto [error, n] = co_await asio::async_write(stream_, http::make_chunk_last(), kAwait);
  is_answered_ = note(error, n);
  co_return is_answered_;
}

asio::awaitable<bool> HttpExchange::wait(Signal& signal) {
  using asio::experimental::awaitable_operators::operator||;
  if (is_gone_) co_return false;
  stream_.expires_never();  // computing takes as long as it takes
  waits_for_ = &signal;
  if (has_more_input_) {
    co_await signal.wait();
  } else {
    co_await (signal.wait() || watch());
  }
  waits_for_ = nullptr;
  co_return !is_gone_;
}

void HttpExchange::abandon() {
  is_gone_ = true;
  if (waits_for_ != nullptr) waits_for_->notify();
}

// Ends when the client closes the connection; not before the other side of wait() otherwise.
asio::awaitable<void> HttpExchange::watch() {
  auto& socket = stream_.socket();
  const auto [error] = co_await socket.async_wait(asio::ip::tcp::socket::wait_read, kAwait);
  if (error == asio::error::operation_aborted) co_return;
  is_gone_ = is_gone_ || error.failed();
  (void)is_client_there();
}

bool HttpExchange::is_client_there() {
  char byte = 0;
  const auto n = ::recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) is_gone_ = true;
  has_more_input_ = n > 0;
  return !is_gone_;
}

void HttpExchange::set_timeout() { stream_.expires_after(facts_.write_time_max); }

bool HttpExchange::note(const boost::system::error_code& error, std::size_t n_bytes) {
  n_bytes_ += n_bytes;
  is_gone_ = is_gone_ || error.failed();
  return !is_gone_;
}

}  // namespace slipstream
