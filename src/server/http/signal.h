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
  static constexpr auto kForever = boost::asio::steady_timer::duration::max();

  explicit Signal(const boost::asio::any_io_executor& executor) : timer_(executor) {}

  void notify() {
    boost::asio::post(timer_.get_executor(), [self = shared_from_this()] {
      self->is_set_ = true;
      self->timer_.cancel();
    });
  }

  // For so long at most.
  boost::asio::awaitable<void> wait(boost::asio::steady_timer::duration time_max = kForever) {
    if (!is_set_) {
      timer_.expires_at(time_max == kForever
                            ? boost::asio::steady_timer::time_point::max()
                            : boost::asio::steady_timer::clock_type::now() + time_max);
      co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    }
    is_set_ = false;
  }

 private:
  boost::asio::steady_timer timer_;
  bool is_set_ = false;
};

}  // namespace slipstream
