// Naming lesser kernels really disables the better ones. Otherwise a measurement of the lesser ones
// would be worthless, and no result would show it.
#include "device/attention/kernel_choice.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "device/attention/amx.h"

namespace slipstream::turbo {
namespace {

class KernelChoice : public testing::Test {
 protected:
  ~KernelChoice() override {
    EXPECT_TRUE(limit_kernels("amx"));
    hwy::DisableTargets(0);
  }
};

TEST_F(KernelChoice, Avx512LeavesOutAmxOnly) {
  const std::int64_t all = hwy::SupportedTargets();
  ASSERT_TRUE(limit_kernels("avx512"));
  EXPECT_FALSE(use_amx());
  EXPECT_EQ(hwy::SupportedTargets(), all);
  ASSERT_TRUE(limit_kernels("amx"));
  EXPECT_EQ(use_amx(), has_amx());
}

#if HWY_ARCH_X86
TEST_F(KernelChoice, Avx2LeavesOutEverythingBetter) {
  ASSERT_TRUE(limit_kernels("avx2"));
  EXPECT_FALSE(use_amx());
  EXPECT_EQ(hwy::SupportedTargets() & (HWY_AVX2 - 1), 0);
  EXPECT_NE(hwy::SupportedTargets(), 0);
}
#endif

TEST_F(KernelChoice, AnUnknownNameIsRefusedWithTheNames) {
  const Result<void> limited = limit_kernels("mmx");
  ASSERT_FALSE(limited);
  EXPECT_NE(limited.error().message.find("amx, avx512, avx2, neon"), std::string::npos);
}

}  // namespace
}  // namespace slipstream::turbo
