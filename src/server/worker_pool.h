// WorkerPool: the threads that process requests: JSON, templates, schemas, tokens. The HTTP threads
// only read, write and wait, so that they stay responsive whatever the workers do.
//
//   auto answer = co_await workers.run(exchange, [&] { return prepare(...); });
//
// Workers give way to threads that send or compute. Work runs in the order of its arrival. If too
// many requests wait, more are refused. If the client of waiting work disconnects, its work does
// not begin. The handler waits for work that has begun, so the work may use what the handler owns.
// Exceptions of the work are thrown to the handler.
//
// Threads: thread-safe; run() is awaited on the handler's executor.
// Errors:  503 if too many requests wait, 499 if the client has gone.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "server/api/api_error.h"
#include "server/http/http_exchange.h"

namespace slipstream {

class WorkerPool {
 public:
  WorkerPool(int n_threads, int n_waiting_max);

  // work: returns an ApiResult.
  template <typename Work>
  boost::asio::awaitable<std::invoke_result_t<Work>> run(HttpExchange& exchange, Work work) {
    if (!enter()) co_return std::unexpected(overloaded());
    co_return co_await run_in_turn(exchange, std::move(work));
  }
  // Continues a request that run() has accepted. It is not refused, because the earlier work would
  // be lost.
  template <typename Work>
  boost::asio::awaitable<std::invoke_result_t<Work>> go_on(HttpExchange& exchange, Work work) {
    ++n_waiting_;
    co_return co_await run_in_turn(exchange, std::move(work));
  }

  [[nodiscard]] int n_waiting() const { return n_waiting_; }
  // Waits for work that has begun. REQUIRES: no handler waits any more.
  void join() { threads_.join(); }

 private:
  // The state of one piece of work. Shared by its handler, which may end first, and the queue.
  class Turn {
   public:
    explicit Turn(const boost::asio::any_io_executor& executor)
        : ended(std::make_shared<Signal>(executor)) {}
    // Returns whether the work is still wanted. If so, end() must be called.
    [[nodiscard]] bool begin() { return leave(State::kBegun); }
    // Returns false if the work has begun.
    [[nodiscard]] bool cancel() { return leave(State::kCancelled); }
    void end() {
      state_ = State::kEnded;
      ended->notify();
    }
    [[nodiscard]] bool has_ended() const { return state_ == State::kEnded; }

    const std::shared_ptr<Signal> ended;

   private:
    enum class State { kWaiting, kBegun, kCancelled, kEnded };
    bool leave(State next) {
      State waiting = State::kWaiting;
      return state_.compare_exchange_strong(waiting, next);
    }
    std::atomic<State> state_ = State::kWaiting;
  };

  [[nodiscard]] bool enter();
  void post(std::function<void()> work);  // REQUIRES: enter() succeeded, or n_waiting_ was raised
  [[nodiscard]] static ApiError overloaded();
  [[nodiscard]] static ApiError client_has_gone();

  template <typename Work>
  boost::asio::awaitable<std::invoke_result_t<Work>> run_in_turn(HttpExchange& exchange,
                                                                 Work work) {
    const auto turn = std::make_shared<Turn>(exchange.executor());
    std::optional<std::invoke_result_t<Work>> result;
    std::exception_ptr failure;
    post([turn, &work, &result, &failure] {
      if (!turn->begin()) return;
      try {
        result.emplace(work());
      } catch (...) {
        failure = std::current_exception();
      }
      turn->end();
    });
    const bool is_there = co_await exchange.wait(*turn->ended);
    if (!is_there && turn->cancel()) co_return std::unexpected(client_has_gone());
    while (!turn->has_ended()) co_await turn->ended->wait();
    if (!result) std::rethrow_exception(failure);
    co_return std::move(*result);
  }

  const int n_waiting_max_;
  std::atomic<int> n_waiting_ = 0;
  boost::asio::thread_pool threads_;
};

}  // namespace slipstream
