#include "server/client_account.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/format.h"

namespace slipstream {
namespace {

constexpr double kSecondsOfMinute = 60;

ApiError rate_limit(std::string message, int seconds) {
  return {.status = 429,
          .message = std::move(message),
          .code = "rate_limit_exceeded",
          .retry_after_s = seconds};
}

}  // namespace

ClientAccount::ClientAccount(std::string name, const ClientLimits& limits,
                             const ClientMetrics& metrics)
    : name_(std::move(name)),
      metrics_(metrics),
      limits_(limits),
      n_tokens_left_(limits.n_tokens_per_minute_max) {}

void ClientAccount::set_limits(const ClientLimits& limits, Clock::time_point now) {
  const MutexLock lock(mutex_);
  fill(now);
  // Tokens that were used from the old allowance count as used from the new one.
  n_tokens_left_ += limits.n_tokens_per_minute_max - limits_.n_tokens_per_minute_max;
  limits_ = limits;
}

ApiResult<ClientAccount::Request> ClientAccount::begin(Clock::time_point now) {
  const MutexLock lock(mutex_);
  if (limits_.n_requests_max > 0 && n_requests_ >= limits_.n_requests_max) {
    metrics_.over_requests->Increment();
    return std::unexpected(rate_limit(
        format_text("'{}' may have {} requests at a time, and has them: wait until one has ended",
                    name_, limits_.n_requests_max),
        1));
  }
  fill(now);
  if (const int n_max = limits_.n_tokens_per_minute_max; n_max > 0 && n_tokens_left_ <= 0) {
    metrics_.over_tokens->Increment();
    const double seconds = (1 - n_tokens_left_) / n_max * kSecondsOfMinute;
    return std::unexpected(rate_limit(
        format_text("'{}' may have {} tokens per minute, and has had them: wait", name_, n_max),
        static_cast<int>(std::ceil(seconds))));
  }
  ++n_requests_;
  metrics_.requests->Increment();
  return Request(shared_from_this());
}

void ClientAccount::end() {
  const MutexLock lock(mutex_);
  --n_requests_;
}

void ClientAccount::charge_prompt(std::size_t n_tokens, Clock::time_point now) {
  metrics_.prompt_tokens->Increment(static_cast<double>(n_tokens));
  charge(n_tokens, now);
}

void ClientAccount::charge_generated(std::size_t n_tokens, Clock::time_point now) {
  metrics_.generated_tokens->Increment(static_cast<double>(n_tokens));
  charge(n_tokens, now);
}

void ClientAccount::charge(std::size_t n_tokens, Clock::time_point now) {
  const MutexLock lock(mutex_);
  if (limits_.n_tokens_per_minute_max == 0) return;
  fill(now);
  n_tokens_left_ -= static_cast<double>(n_tokens);
}

void ClientAccount::fill(Clock::time_point now) {
  const double n_max = limits_.n_tokens_per_minute_max;
  const double seconds =
      filled_ == Clock::time_point() ? 0 : std::chrono::duration<double>(now - filled_).count();
  filled_ = now;
  n_tokens_left_ = std::min(n_max, n_tokens_left_ + seconds * n_max / kSecondsOfMinute);
}

}  // namespace slipstream
