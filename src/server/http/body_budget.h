// BodyBudget: limits the total bytes of all connections' bodies while they are read and processed.
//
// A body is charged for the bytes that have arrived, not for what its header says, so that a slow
// sender keeps nobody out. The first bytes of each body are free, so that ordinary requests never
// wait for large ones; the limit on connections bounds them. A body without room waits, its client
// is not read from meanwhile, and it is refused when the time is up. Room for one whole body is
// reserved for the body that began first, so that half-read bodies do not wait for each other.
//
// Threads: thread-safe; grow_to() is awaited on the connection's executor.
// Errors:  none except for lack of room.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>

#include "base/mutex.h"

namespace slipstream {

class BodyBudget {
 public:
  struct Options {
    std::size_t bytes_max;
    std::size_t body_bytes_max;  // limit for one body
    std::size_t free_bytes;      // not charged, for each body
    std::chrono::milliseconds wait_max;
  };
  explicit BodyBudget(const Options& options) : options_(options) {}

  // What one body takes from the budget, until it is released or destroyed.
  class Share {
   public:
    explicit Share(BodyBudget& budget) : budget_(budget) {}
    ~Share() { budget_.forget(*this, n_charged_); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // The body has this many bytes now. Returns false if there was no room in time.
    boost::asio::awaitable<bool> grow_to(std::size_t n_bytes,
                                         const boost::asio::any_io_executor& executor);
    void stop_growing();  // the body is complete
    void release();

   private:
    BodyBudget& budget_;
    std::size_t n_charged_ = 0;
  };
  [[nodiscard]] std::size_t n_taken() const;

 private:
  struct Waiting {
    const Share* share;
    std::size_t n_bytes;
    boost::asio::steady_timer timer;
    bool is_granted = false;  // guarded by the budget's mutex
  };

  using WaitingList = std::list<std::shared_ptr<Waiting>>;
  boost::asio::awaitable<bool> take(const Share& share, std::size_t n_bytes,
                                    const boost::asio::any_io_executor& executor);
  // Returns null if the bytes were taken at once.
  [[nodiscard]] std::shared_ptr<Waiting> take_or_wait(const Share& share, std::size_t n_bytes,
                                                      const boost::asio::any_io_executor& executor);
  [[nodiscard]] bool stop_waiting(const std::shared_ptr<Waiting>& waiting);
  void give_back(const Share& share, std::size_t n_bytes);
  // The share ends. It may still be waiting, if an exception ended its request.
  void forget(const Share& share, std::size_t n_bytes);
  [[nodiscard]] bool is_oldest(const Share& share) const SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] bool fits(const Share& share, std::size_t n_bytes) const
      SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] WaitingList::iterator next_to_grant() SLIP_TSA(requires_capability(mutex_));
  void grant() SLIP_TSA(requires_capability(mutex_));

  const Options options_;
  mutable Mutex mutex_;
  std::size_t n_taken_ SLIP_GUARDED_BY(mutex_) = 0;
  std::list<const Share*> growing_ SLIP_GUARDED_BY(mutex_);  // in the order in which they began
  // Each entry is shared with the connection that waits.
  WaitingList waiting_ SLIP_GUARDED_BY(mutex_);
};

}  // namespace slipstream
