#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "bench/calibrate/calibrate.h"
#include "bench/quality/verdict.h"

namespace slipstream::calibrate {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kBudget = quality::kFineUpTo.kl_mean;

quality::ArmResult with_figures(double kl, double same_top) {
  quality::ArmResult arm;
  arm.divergence = {{.depth = 512, .divergence = {.kl_mean = 0.001, .same_top = 0.99}},
                    {.depth = 1024, .divergence = {.kl_mean = kl, .same_top = same_top}}};
  return arm;
}

quality::ArmResult with_needles(std::initializer_list<bool> right) {
  quality::ArmResult arm = with_figures(0.001, 0.99);
  for (const bool is_right : right) arm.needles.push_back({.right = is_right});
  return arm;
}

std::string objection(const quality::ArmResult& found, double budget = kBudget) {
  Trial trial;
  return objection_to(found, with_figures(0, 1), budget, trial);
}

TEST(Objection, ThereIsNoneWithinTheBudget) {
  Trial trial;
  EXPECT_THAT(objection_to(with_figures(0.019, 0.91), {}, kBudget, trial), IsEmpty());
  EXPECT_EQ(trial.kl, 0.019);
  EXPECT_EQ(trial.same_top, 0.91);
}

TEST(Objection, TheWorstDepthDecides) {
  EXPECT_THAT(objection(with_figures(0.021, 0.95)),
              HasSubstr("divergence 0.0210 at depth 1024 is above 0.02"));
  EXPECT_THAT(objection(with_figures(std::numeric_limits<double>::quiet_NaN(), 0.95)),
              HasSubstr("nan"));
}

TEST(Objection, TokensThatAreNotInTheCacheAreNeverWithinABudget) {
  quality::ArmResult arm = with_figures(0.001, 0.99);
  arm.divergence[0].rows.n_lost = quality::kLostRun;
  EXPECT_THAT(objection(arm, 10), HasSubstr("does not hold what was written to it"));
}

TEST(Objection, TopTokensCountAsFarAsTheBudgetSays) {
  EXPECT_THAT(objection(with_figures(0.015, 0.89)),
              HasSubstr("89.0 % at depth 1024 is below 90 %"));
  EXPECT_THAT(objection(with_figures(0.015, 0.89), 0.1), IsEmpty());
  EXPECT_THAT(objection(with_figures(0.015, 0.59), 0.1), HasSubstr("below 60 %"));
}

TEST(Objection, ANeedleThatF16FindsMustBeFound) {
  Trial trial;
  EXPECT_EQ(objection_to(with_needles({true, false, true}), with_needles({true, true, false}),
                         kBudget, trial),
            "1 of 2 needles that f16 finds is lost");
  EXPECT_EQ(trial.n_needles, 2);
  EXPECT_EQ(trial.n_needles_found, 1);
  Trial other;
  EXPECT_THAT(objection_to(with_needles({true, false, true}), with_needles({true, false, true}),
                           kBudget, other),
              IsEmpty())
      << "what f16 does not find need not be found";
}

TEST(Objection, OnlyALostNeedleMayBeChance) {
  const auto is_chance = [](const quality::ArmResult& found, const quality::ArmResult& f16) {
    Trial trial;
    trial.objection = objection_to(found, f16, kBudget, trial);
    return lost_needles_only(trial);
  };
  EXPECT_TRUE(is_chance(with_needles({false}), with_needles({true})));
  EXPECT_FALSE(is_chance(with_needles({true}), with_needles({true})));
  EXPECT_FALSE(is_chance(with_figures(0.015, 0.5), {}));
  EXPECT_FALSE(is_chance(with_figures(std::numeric_limits<double>::quiet_NaN(), 0.99), {}));
  quality::ArmResult lost = with_figures(0.001, 0.99);
  lost.divergence[0].rows.n_lost = quality::kLostRun;
  EXPECT_FALSE(is_chance(lost, {}));
}

}  // namespace
}  // namespace slipstream::calibrate
