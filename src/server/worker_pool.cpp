#include "server/worker_pool.h"

#include <boost/asio/post.hpp>

#include "server/give_way.h"

namespace slipstream {

namespace asio = boost::asio;

WorkerPool::WorkerPool(int n_threads, int n_waiting_max)
    : n_waiting_max_(n_waiting_max), threads_(static_cast<std::size_t>(n_threads)) {}

bool WorkerPool::enter() {
  int n_waiting = n_waiting_;
  while (n_waiting < n_waiting_max_) {
    if (n_waiting_.compare_exchange_weak(n_waiting, n_waiting + 1)) return true;
  }
  return false;
}

void WorkerPool::post(std::function<void()> work) {
  try {
    asio::post(threads_, [this, work = std::move(work)] {
      [[maybe_unused]] thread_local const bool gives_way = give_way();
      --n_waiting_;
      work();
    });
  } catch (...) {
    --n_waiting_;
    throw;
  }
}

ApiError WorkerPool::overloaded() {
  return {.status = 503, .message = "Too many requests are waiting to be read: try again soon"};
}

ApiError WorkerPool::client_has_gone() { return {.status = 499, .message = "the client has gone"}; }

}  // namespace slipstream
