// BoundedQueue<T>: how threads of different rooms meet. First in, first out; never grows past its
// capacity, so that a slow consumer turns into a refusal at the producer instead of into memory.
//
// close() ends it in order: later pushes are refused, what is queued can still be popped, and then
// pop() returns nothing.
//
// Threads: thread-safe, any number of producers and consumers.
// Errors:  push fails with kOverloaded when full, kCancelled when closed; the item is then dropped.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "base/result.h"

namespace slipstream {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t n_items_max) : n_items_max_(n_items_max) {
    SLIP_CHECK(n_items_max > 0, "a queue that can hold nothing");
  }

  [[nodiscard]] Result<void> try_push(T item) {
    {
      const MutexLock lock(mutex_);
      if (closed_) return fail(Code::kCancelled, "the queue is closed");
      if (items_.size() >= n_items_max_) return fail(Code::kOverloaded, "the queue is full");
      items_.push_back(std::move(item));
    }
    item_or_closed_.notify_one();
    return {};
  }

  // Waits for an item. Nothing when the queue is closed and empty, or when stop is requested.
  [[nodiscard]] std::optional<T> pop(const std::stop_token& stop = {}) {
    const MutexLock lock(mutex_);
    const bool woken_by_queue = item_or_closed_.wait(
        mutex_, stop, [this]() SLIP_TSA(no_thread_safety_analysis) { return ready(); });
    if (!woken_by_queue) return std::nullopt;
    return take();
  }

  // The same, but also nothing when the time is up.
  [[nodiscard]] std::optional<T> pop_for(std::chrono::milliseconds time_max,
                                         const std::stop_token& stop = {}) {
    const MutexLock lock(mutex_);
    const bool woken_by_queue = item_or_closed_.wait_for(
        mutex_, stop, time_max, [this]() SLIP_TSA(no_thread_safety_analysis) { return ready(); });
    if (!woken_by_queue) return std::nullopt;
    return take();
  }

  // Does not wait.
  [[nodiscard]] std::optional<T> try_pop() {
    const MutexLock lock(mutex_);
    return take();
  }

  void close() {
    {
      const MutexLock lock(mutex_);
      closed_ = true;
    }
    item_or_closed_.notify_all();
  }

  [[nodiscard]] std::size_t size() const {
    const MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  bool ready() const SLIP_TSA(requires_capability(mutex_)) { return closed_ || !items_.empty(); }

  std::optional<T> take() SLIP_TSA(requires_capability(mutex_)) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    return item;
  }

  const std::size_t n_items_max_;
  mutable Mutex mutex_;
  std::condition_variable_any item_or_closed_;
  std::deque<T> items_ SLIP_GUARDED_BY(mutex_);
  bool closed_ SLIP_GUARDED_BY(mutex_) = false;
};

}  // namespace slipstream
