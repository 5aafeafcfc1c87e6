#include "engine/scheduling/prefill_control.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

// A machine with these step times; returns the chunk after n steps beside a long prompt.
struct Machine {
  double generate_seconds;
  double token_seconds;

  int run(PrefillControl& control, int n_steps) const {
    int n_tokens = 0;
    for (int i = 0; i < n_steps; ++i) {
      const int n = control.n_tokens_max();
      control.observe(n, 4, generate_seconds + n * token_seconds);
      if (n > 0) n_tokens = n;
    }
    return n_tokens;
  }
};

TEST(PrefillControl, StretchesAStepByItsGoal) {
  PrefillControl control(512);
  EXPECT_NEAR((Machine{.generate_seconds = 0.1, .token_seconds = 0.004}.run(control, 200)), 17, 3);
}

TEST(PrefillControl, FollowsAMachineThatBecomesSlower) {
  PrefillControl control(512);
  (void)Machine{.generate_seconds = 0.1, .token_seconds = 0.002}.run(control, 100);
  EXPECT_NEAR((Machine{.generate_seconds = 0.2, .token_seconds = 0.02}.run(control, 500)), 7, 2);
}

// Each chunk has a high fixed cost, like one at the end of a long prompt.
TEST(PrefillControl, IsNotMisledByWhatEveryChunkCosts) {
  PrefillControl control(512);
  int n_tokens = 0;
  for (int i = 0; i < 500; ++i) {
    n_tokens = control.n_tokens_max();
    control.observe(n_tokens, 4, 0.1 + (n_tokens > 0 ? 0.04 : 0) + n_tokens * 0.002);
  }
  EXPECT_NEAR(n_tokens, 13, 5);
}

TEST(PrefillControl, AlwaysLetsAPromptAdvanceAndNeverBeyondTheBatch) {
  PrefillControl slow(512);
  EXPECT_EQ((Machine{.generate_seconds = 0.01, .token_seconds = 1}.run(slow, 200)),
            PrefillControl::kTokensMin);
  PrefillControl fast(512);
  EXPECT_EQ((Machine{.generate_seconds = 1, .token_seconds = 1e-9}.run(fast, 200)), 512);
  PrefillControl tiny(2);
  EXPECT_EQ((Machine{.generate_seconds = 0.1, .token_seconds = 0.1}.run(tiny, 200)), 2);
}

TEST(PrefillControl, RunsAStepWithoutPromptsNowAndThen) {
  PrefillControl control(512);
  int n_without = 0;
  for (int i = 0; i < 330; ++i) {
    const int n = control.n_tokens_max();
    n_without += n == 0 ? 1 : 0;
    control.observe(n, 1, 0.1 + n * 0.01);
  }
  EXPECT_EQ(n_without, 10);
}

TEST(PrefillControl, LearnsNothingFromStepsInWhichNobodyGenerates) {
  PrefillControl control(512);
  control.observe(512, 0, 10);
  EXPECT_EQ(control.n_tokens_max(), 16);
}

}  // namespace
}  // namespace slipstream
