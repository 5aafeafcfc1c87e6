#include "server/worker_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>

namespace slipstream {

namespace asio = boost::asio;

namespace {

// Lowers the priority of this thread below that of the threads that serve sockets or compute. A
// request that begins a little later costs less than a delay in the answers of others. Every thread
// may raise its own nice value; 5 more means a third of the weight.
bool give_way() {
  constexpr int kNicer = 5;
  const auto thread = static_cast<id_t>(::gettid());
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, thread);
  return errno == 0 && ::setpriority(PRIO_PROCESS, thread, nice + kNicer) == 0;
}

}  // namespace

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
