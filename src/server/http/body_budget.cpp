#include "server/http/body_budget.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "server/http/await.h"

namespace slipstream {

namespace asio = boost::asio;

asio::awaitable<bool> BodyBudget::Share::grow_to(std::size_t n_bytes,
                                                 const asio::any_io_executor& executor) {
  const std::size_t n_free = budget_.options_.free_bytes;
  const std::size_t n_wanted = n_bytes > n_free ? n_bytes - n_free : 0;
  if (n_wanted <= n_charged_) co_return true;
  if (!co_await budget_.take(*this, n_wanted - n_charged_, executor)) co_return false;
  n_charged_ = n_wanted;
  co_return true;
}

void BodyBudget::Share::stop_growing() { budget_.give_back(*this, 0); }

void BodyBudget::Share::release() {
  if (n_charged_ > 0) budget_.give_back(*this, std::exchange(n_charged_, 0));
}

std::size_t BodyBudget::n_taken() const {
  const MutexLock lock(mutex_);
  return n_taken_;
}

asio::awaitable<bool> BodyBudget::take(const Share& share, std::size_t n_bytes,
                                       const asio::any_io_executor& executor) {
  const std::shared_ptr<Waiting> waiting = take_or_wait(share, n_bytes, executor);
  if (!waiting) co_return true;
  co_await waiting->timer.async_wait(kAwait);
  co_return stop_waiting(waiting);
}

std::shared_ptr<BodyBudget::Waiting> BodyBudget::take_or_wait(
    const Share& share, std::size_t n_bytes, const asio::any_io_executor& executor) {
  const MutexLock lock(mutex_);
  if (!std::ranges::contains(growing_, &share)) growing_.push_back(&share);
  if ((waiting_.empty() || is_oldest(share)) && fits(share, n_bytes)) {
    n_taken_ += n_bytes;
    return nullptr;
  }
  auto waiting = std::make_shared<Waiting>(&share, n_bytes, asio::steady_timer(executor));
  waiting->timer.expires_after(options_.wait_max);
  waiting_.push_back(waiting);
  return waiting;
}

// Returns whether the request was granted.
bool BodyBudget::stop_waiting(const std::shared_ptr<Waiting>& waiting) {
  const MutexLock lock(mutex_);
  if (waiting->is_granted) return true;
  waiting_.remove(waiting);
  growing_.remove(waiting->share);
  grant();  // a smaller request behind it may fit now
  return false;
}

void BodyBudget::give_back(const Share& share, std::size_t n_bytes) {
  const MutexLock lock(mutex_);
  n_taken_ -= n_bytes;
  growing_.remove(&share);
  grant();
}

void BodyBudget::forget(const Share& share, std::size_t n_bytes) {
  {
    const MutexLock lock(mutex_);
    waiting_.remove_if([&](const auto& waiting) { return waiting->share == &share; });
  }
  give_back(share, n_bytes);
}

bool BodyBudget::is_oldest(const Share& share) const {
  return !growing_.empty() && growing_.front() == &share;
}

bool BodyBudget::fits(const Share& share, std::size_t n_bytes) const {
  const std::size_t n_kept = is_oldest(share) ? 0 : options_.body_bytes_max;
  return n_taken_ + n_bytes + n_kept <= options_.bytes_max;
}

BodyBudget::WaitingList::iterator BodyBudget::next_to_grant() {
  const auto oldest = std::ranges::find_if(
      waiting_, [this](const auto& waiting)
                    SLIP_TSA(no_thread_safety_analysis) { return is_oldest(*waiting->share); });
  const auto next = oldest != waiting_.end() ? oldest : waiting_.begin();
  const bool has_room = next != waiting_.end() && fits(*(*next)->share, (*next)->n_bytes);
  return has_room ? next : waiting_.end();
}

void BodyBudget::grant() {
  for (auto next = next_to_grant(); next != waiting_.end(); next = next_to_grant()) {
    const std::shared_ptr<Waiting> granted = std::move(*next);
    waiting_.erase(next);
    n_taken_ += granted->n_bytes;
    granted->is_granted = true;
    try {
      // The handler runs on the waiting coroutine's executor, so never before the coroutine waits.
      asio::post(granted->timer.get_executor(), [granted] { granted->timer.cancel(); });
    } catch (const std::exception&) {
      continue;  // it notices when its timer expires
    }
  }
}

}  // namespace slipstream
