// ClientAccount: what one key uses and what it may use: requests at a time and tokens per minute.
//
// Tokens are in a bucket that fills up within a minute. A request is accepted while the bucket has
// tokens. What the request uses is then taken from the bucket, which may become negative, because
// nobody knows in advance how much a model will write. So a key may exceed its limit by the
// requests in progress, and then waits longer.
//
// Threads: thread-safe.
// Errors:  begin(): 429, with the time after which the client should try again.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "server/api/api_error.h"
#include "server/metrics.h"

namespace slipstream {

struct ClientLimits {
  int n_requests_max = 0;           // at a time; 0: no limit
  int n_tokens_per_minute_max = 0;  // of prompts and answers; 0: no limit

  bool operator==(const ClientLimits&) const = default;
};

class ClientAccount : public std::enable_shared_from_this<ClientAccount> {
 public:
  using Clock = std::chrono::steady_clock;

  ClientAccount(std::string name, const ClientLimits& limits, const ClientMetrics& metrics);

  // Call this after the file was read again. Requests in progress stay counted.
  void set_limits(const ClientLimits& limits, Clock::time_point now = Clock::now());

  // Counts one request in progress until it is destroyed.
  class Request {
   public:
    explicit Request(std::shared_ptr<ClientAccount> account) : account_(std::move(account)) {}
    ~Request() {
      if (account_) account_->end();
    }
    Request(Request&& other) noexcept = default;
    Request& operator=(Request&&) = delete;
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

   private:
    std::shared_ptr<ClientAccount> account_;  // shared with the list of keys, which may be replaced
  };
  [[nodiscard]] ApiResult<Request> begin(Clock::time_point now = Clock::now());

  void charge_prompt(std::size_t n_tokens, Clock::time_point now = Clock::now());
  void charge_generated(std::size_t n_tokens, Clock::time_point now = Clock::now());

 private:
  void end();
  void charge(std::size_t n_tokens, Clock::time_point now);
  void fill(Clock::time_point now) SLIP_TSA(requires_capability(mutex_));

  const std::string name_;
  const ClientMetrics metrics_;
  Mutex mutex_;
  ClientLimits limits_ SLIP_GUARDED_BY(mutex_);
  int n_requests_ SLIP_GUARDED_BY(mutex_) = 0;
  double n_tokens_left_ SLIP_GUARDED_BY(mutex_) = 0;
  Clock::time_point filled_ SLIP_GUARDED_BY(mutex_) = {};
};

}  // namespace slipstream
