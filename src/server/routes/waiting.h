// Waiting: counts a request while it waits for a thread, so that there is a limit of them.
//
//   const Waiting waiting(n_waiting_);
//   if (waiting.are_more_than(kWaitingMax)) co_return std::unexpected(...);
//
// Threads: the counter may be shared. Errors: none.
#pragma once

#include <atomic>

namespace slipstream {

class Waiting {
 public:
  explicit Waiting(std::atomic<int>& n_waiting) : n_waiting_(n_waiting) { ++n_waiting_; }
  ~Waiting() { --n_waiting_; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  [[nodiscard]] bool are_more_than(int n_max) const { return n_waiting_ > n_max; }

 private:
  std::atomic<int>& n_waiting_;
};

}  // namespace slipstream
