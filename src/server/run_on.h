// run_on(): runs blocking work on another thread. The caller's coroutine awaits its result.
//
//   const auto models = co_await run_on(disk_, [&] { return library.list(); });
//
// REQUIRES: the owner of the thread outlives the wait. The caller gets exceptions of the work.
//
// Threads: thread-safe.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <type_traits>
#include <utility>

namespace slipstream {

template <typename Work>
boost::asio::awaitable<std::invoke_result_t<Work>> run_on(boost::asio::thread_pool& thread,
                                                          Work work) {
  using Answer = boost::asio::awaitable<std::invoke_result_t<Work>>;
  co_return co_await boost::asio::co_spawn(
      thread, [&work]() -> Answer { co_return work(); }, boost::asio::use_awaitable);
}

}  // namespace slipstream
