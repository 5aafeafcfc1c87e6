// Checks what the tests of kernels "on every instruction set" rely on: Highway really calls each
// one, and an emulator offers those that it was started for.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/instruction_sets_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
std::int64_t target_of_the_call() { return HWY_TARGET; }
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slipstream::turbo {
namespace {

HWY_EXPORT(target_of_the_call);

// Targets that are compiled in and that this machine has.
std::int64_t usable_targets() { return HWY_TARGETS & hwy::SupportedTargets(); }

TEST(InstructionSets, EachOneIsCalledWhenItIsTheOnlyOne) {
  ASSERT_NE(usable_targets(), 0);
  for (std::int64_t targets = usable_targets(); targets != 0; targets &= targets - 1) {
    const std::int64_t target = targets & -targets;
    hwy::SetSupportedTargetsForTest(target);
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(target_of_the_call)(), target) << hwy::TargetName(target);
    hwy::SetSupportedTargetsForTest(0);
  }
}

// SLIPSTREAM_EXPECT_TARGETS has target names as Highway writes them. The presets that emulate a
// machine set it.
TEST(InstructionSets, TheEmulatorOffersThoseItWasStartedFor) {
  const char* expected = std::getenv("SLIPSTREAM_EXPECT_TARGETS");
  std::string usable;
  for (std::int64_t targets = usable_targets(); targets != 0; targets &= targets - 1)
    usable += std::string(hwy::TargetName(targets & -targets)) + ' ';
  std::istringstream names(expected != nullptr ? expected : "");
  for (std::string name; names >> name;)
    EXPECT_NE((' ' + usable).find(' ' + name + ' '), std::string::npos) << name << " of " << usable;
}

}  // namespace
}  // namespace slipstream::turbo
#endif
