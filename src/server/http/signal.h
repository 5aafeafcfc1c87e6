// Signal: wakes a coroutine from any thread.
//
// A signal belongs to the executor of one coroutine, and only that coroutine waits for it. A
// notify() before wait() is not lost. Several notify() count as one.
//
// Threads: notify() is thread-safe; the rest runs on the executor. Errors: none.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>

namespace slipstream {

class Signal : public std::enable_shared_from_this<Signal> {
 public:
  explicit Signal(const boost::asio::any_io_executor& executor)
      : timer_(executor, boost::asio::steady_timer::time_point::max()) {}

  void notify() {
    boost::asio::post(timer_.get_executor(), [self = shared_from_this()] {
      self->is_set_ = true;
      self->timer_.cancel();
    });
  }

  boost::asio::awaitable<void> wait() {
    if (!is_set_) co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    is_set_ = false;
  }

 private:
  boost::asio::steady_timer timer_;
  bool is_set_ = false;
};

}  // namespace slipstream
