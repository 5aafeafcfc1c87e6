// BodyBudget: how many bytes the bodies of all connections may have together, while they are read
// and worked on.
//
// A body is charged for what has arrived of it, not for what its header says: whoever sends slowly
// keeps nobody out. The first bytes of each are free, so that ordinary requests never wait for
// large ones; the limit on connections bounds those. A body that finds no room waits while its
// client is not read from, and is refused when the time is up. As much as one body may have is kept
// for the one that was begun first, so that bodies that are all half there do not wait for each
// other.
//
// Threads: thread-safe; grow_to() is awaited on the connection's executor. Errors: none but no
// room.
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
    std::size_t body_bytes_max;  // of one
    std::size_t free_bytes;      // of each
    std::chrono::milliseconds wait_max;
  };
  explicit BodyBudget(const Options& options) : options_(options) {}

  // What one body takes of it, until it is released or destroyed.
  class Share {
   public:
    explicit Share(BodyBudget& budget) : budget_(budget) {}
    ~Share() { release(); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // The body has so many bytes now. False: there was no room in time.
    boost::asio::awaitable<bool> grow_to(std::size_t n_bytes,
                                         const boost::asio::any_io_executor& executor);
    void stop_growing();  // all of it is there
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
  // Null: taken at once.
  [[nodiscard]] std::shared_ptr<Waiting> take_or_wait(const Share& share, std::size_t n_bytes,
                                                      const boost::asio::any_io_executor& executor);
  [[nodiscard]] bool stop_waiting(const std::shared_ptr<Waiting>& waiting);
  void give_back(const Share& share, std::size_t n_bytes);
  [[nodiscard]] bool is_oldest(const Share& share) const SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] bool fits(const Share& share, std::size_t n_bytes) const
      SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] WaitingList::iterator next_to_grant() SLIP_TSA(requires_capability(mutex_));
  void grant() SLIP_TSA(requires_capability(mutex_));

  const Options options_;
  mutable Mutex mutex_;
  std::size_t n_taken_ SLIP_GUARDED_BY(mutex_) = 0;
  std::list<const Share*> growing_ SLIP_GUARDED_BY(mutex_);  // in the order in which they began
  // Each is shared with the connection that waits.
  WaitingList waiting_ SLIP_GUARDED_BY(mutex_);
};

}  // namespace slipstream
