#include "server/client_account.h"

#include <gtest/gtest.h>

#include <optional>

namespace slipstream {
namespace {

using std::chrono::seconds;
using Clock = ClientAccount::Clock;

class Accounts : public testing::Test {
 protected:
  std::shared_ptr<ClientAccount> account(const ClientLimits& limits) {
    return std::make_shared<ClientAccount>("ann", limits, metrics_.client("ann"));
  }

  Metrics metrics_;
  const Clock::time_point start_ = Clock::now();
};

TEST_F(Accounts, RequestsAtATime) {
  const auto ann = account({.n_requests_max = 2});
  std::optional<ApiResult<ClientAccount::Request>> first = ann->begin();
  const auto second = ann->begin();
  EXPECT_TRUE(first->has_value() && second.has_value());
  const auto third = ann->begin();
  ASSERT_FALSE(third.has_value());
  EXPECT_EQ(third.error().status, 429);
  EXPECT_EQ(third.error().code, "rate_limit_exceeded");
  EXPECT_TRUE(third.error().message.contains("'ann' may have 2 requests"));
  first.reset();
  EXPECT_TRUE(ann->begin().has_value()) << "one has ended";
}

TEST_F(Accounts, TokensPerMinuteComeBackWithTime) {
  const auto ann = account({.n_tokens_per_minute_max = 600});
  EXPECT_TRUE(ann->begin(start_).has_value());
  ann->charge_prompt(500, start_);
  EXPECT_TRUE(ann->begin(start_).has_value()) << "100 are left";
  ann->charge_generated(200, start_);
  const auto refused = ann->begin(start_);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().status, 429);
  EXPECT_EQ(refused.error().retry_after_s, 11) << "10 a second, and 100 more than there were";
  EXPECT_FALSE(ann->begin(start_ + seconds(10)).has_value());
  EXPECT_TRUE(ann->begin(start_ + seconds(11)).has_value()) << "as it was told";
  // After a long pause a client has the tokens of one minute, not more.
  ann->charge_prompt(601, start_ + seconds(3600));
  EXPECT_FALSE(ann->begin(start_ + seconds(3600)).has_value());
}

TEST_F(Accounts, NewLimitsKeepWhatWasUsed) {
  const auto ann = account({.n_requests_max = 1, .n_tokens_per_minute_max = 600});
  const auto request = ann->begin(start_);
  ann->charge_prompt(1000, start_);
  ann->set_limits({.n_requests_max = 1, .n_tokens_per_minute_max = 1200}, start_);
  EXPECT_TRUE(ann->begin(start_).error().message.contains("1 requests")) << "it is in progress";
  ann->set_limits({.n_tokens_per_minute_max = 900}, start_);
  EXPECT_FALSE(ann->begin(start_).has_value()) << "1000 of 900 are used";
  ann->set_limits({.n_tokens_per_minute_max = 1200}, start_);
  EXPECT_TRUE(ann->begin(start_).has_value());
  ann->set_limits({}, start_);
  ann->charge_prompt(1'000'000, start_);
  EXPECT_TRUE(ann->begin(start_).has_value()) << "without limits";
}

}  // namespace
}  // namespace slipstream
