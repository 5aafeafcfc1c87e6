#include "bench/calibrate/attend_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model/kv_scheme.h"

namespace slipstream::calibrate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(AttendLimits, GoUpToHalfOfTheDeepestText) {
  EXPECT_THAT(attend_limits(1023), IsEmpty());
  EXPECT_THAT(attend_limits(1024), ElementsAre(512));
  EXPECT_THAT(attend_limits(2047), ElementsAre(512));
  EXPECT_THAT(attend_limits(8192), ElementsAre(512, 1024, 2048, 4096));
  EXPECT_THAT(attend_limits(10000), ElementsAre(512, 1024, 2048, 4096));
}

TEST(AttendLimits, AllOfThemAreSchemes) {
  for (const std::int64_t limit : attend_limits(1 << 20)) {
    const Result<KvScheme> scheme =
        parse_kv_scheme("turbo4v3,0-1=turbo8,attend=" + std::to_string(limit));
    ASSERT_TRUE(scheme) << scheme.error().message;
    EXPECT_EQ(scheme->attend(), limit);
  }
}

quality::ArmResult arm(double kl, double kl_decoded, std::initializer_list<bool> right) {
  quality::ArmResult found;
  for (const int depth : {512, 4096}) {
    found.divergence.push_back(
        {.depth = depth, .divergence = {.n_tokens = 9, .kl_mean = kl, .same_top = 0.9}});
    if (depth == 4096) {
      found.divergence.back().decoded = {.n_tokens = 9, .kl_mean = kl_decoded, .same_top = 0.8};
    }
    for (const bool is_right : right) found.needles.push_back({.depth = depth, .right = is_right});
  }
  return found;
}

TEST(AddFindings, KeepsEachDepthApart) {
  const quality::ArmResult f16 = arm(0, 0, {true, true, false});
  std::vector<DepthEvidence> at;
  quality::ArmResult divergences = arm(0.01, 0.02, {});
  add_findings(divergences, f16, at);
  ASSERT_EQ(at.size(), 2U);
  EXPECT_EQ(at[0].kl, 0.01);
  EXPECT_EQ(at[0].kl_decoded, 0) << "none were read one at a time";
  EXPECT_EQ(at[1].kl_decoded, 0.02);
  EXPECT_EQ(at[1].same_top_decoded, 0.8);
  EXPECT_EQ(at[1].n_needles, 0);
  quality::ArmResult needles = arm(0, 0, {true, false, true});
  needles.divergence.clear();
  add_findings(needles, f16, at);
  ASSERT_EQ(at.size(), 2U);
  EXPECT_EQ(at[1].kl, 0.01);
  EXPECT_EQ(at[1].n_needles, 2);
  EXPECT_EQ(at[1].n_needles_found, 1);
}

TEST(AttendReason, SaysHowFarItWasMeasuredAndWhatFailed) {
  AttendEvidence attend{.depth_max = 8192};
  EXPECT_THAT(attend_reason(attend), HasSubstr("only keys in codes"));
  attend.trials = {{.kv = "turbo4"},
                   {.kv = "turbo4,attend=512", .attend = 512, .objection = "too bad"}};
  EXPECT_THAT(attend_reason(attend), HasSubstr("at a depth of 8192 is 512: too bad."));
  attend.trials.push_back({.kv = "turbo4,attend=1024", .attend = 1024});
  attend.chosen = "turbo4,attend=1024";
  EXPECT_THAT(attend_reason(attend), HasSubstr("A smaller limit, 512, was tried: too bad."));
  EXPECT_THAT(attend_reason(attend), HasSubstr("to a depth of 8192 tokens: nothing is known"));
  EXPECT_THAT(attend_reason(attend), HasSubstr("Only divergences speak for it"));
  attend.trials.back().at = {{.depth = 512}, {.depth = 8192, .n_needles = 9}};
  EXPECT_THAT(attend_reason(attend), Not(HasSubstr("Only divergences")));
  attend.trials.erase(attend.trials.begin() + 1);
  EXPECT_THAT(attend_reason(attend), Not(HasSubstr("smaller")));
}

}  // namespace
}  // namespace slipstream::calibrate
