// run_on(): work that blocks, on a thread where it may; its result is awaited where it is wanted.
//
//   const auto models = co_await run_on(disk_, [&] { return library.list(); });
//
// Whoever owns the thread outlives the wait. What the work throws is thrown to who waits.
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
