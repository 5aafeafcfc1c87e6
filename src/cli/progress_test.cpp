#include "cli/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace slipstream {
namespace {

TEST(Progress, ANoteTellsSpeedAndTimeBetterThanAnEstimate) {
  EXPECT_EQ(progress_line("x", 0.5, {.text = "1 of 2", .seconds_left = 61}),
            "x [############------------]  50%  1 of 2  1:01 left");
  EXPECT_EQ(progress_line("x", 0.5, {.text = "1 of 2", .seconds_left = std::nullopt}),
            "x [############------------]  50%  1 of 2");
  EXPECT_EQ(progress_line("x", 0.5, 3.0), "x [############------------]  50%  0:03 left");
}

// Captured output goes to a file, which Progress treats as a log.
TEST(Progress, ALogGetsWholeLinesAndOnlyNowAndThen) {
  testing::internal::CaptureStderr();
  {
    Progress often("often", std::chrono::milliseconds(0));
    often.show(0.5);
    often.show(0.5, {.text = "1 of 2", .seconds_left = std::nullopt});
    Progress seldom("seldom");
    seldom.show(0.5);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "often [############------------]  50%  0:00 left\n"
            "often [############------------]  50%  1 of 2\n");
}

}  // namespace
}  // namespace slipstream
