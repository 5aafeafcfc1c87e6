// Naming lesser kernels really disables the better ones. Otherwise a measurement of the lesser ones
// would be worthless, and no result would show it.
#include "device/attention/kernel_choice.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "device/attention/amx.h"

namespace slipstream::turbo {
namespace {

#if HWY_ARCH_X86
constexpr const char* kBest = "amx";
constexpr const char* kOfAnother = "neon";
#else
constexpr const char* kBest = "neon";
constexpr const char* kOfAnother = "amx";
#endif

class KernelChoice : public testing::Test {
 protected:
  ~KernelChoice() override {
    EXPECT_TRUE(limit_kernels(kBest));
    hwy::DisableTargets(0);
  }
};

#if HWY_ARCH_X86
TEST_F(KernelChoice, Avx512LeavesOutAmxOnly) {
  const std::int64_t all = hwy::SupportedTargets();
  ASSERT_TRUE(limit_kernels("avx512"));
  EXPECT_FALSE(use_amx());
  EXPECT_EQ(hwy::SupportedTargets(), all);
  ASSERT_TRUE(limit_kernels("amx"));
  EXPECT_EQ(use_amx(), has_amx());
}

TEST_F(KernelChoice, Avx2LeavesOutEverythingBetter) {
  ASSERT_TRUE(limit_kernels("avx2"));
  EXPECT_FALSE(use_amx());
  EXPECT_EQ(hwy::SupportedTargets() & (HWY_AVX2 - 1), 0);
  EXPECT_NE(hwy::SupportedTargets(), 0);
}
#endif

TEST_F(KernelChoice, AnUnknownNameIsRefusedWithTheNames) {
  for (const char* name : {"mmx", "", kOfAnother}) {
    const Result<void> limited = limit_kernels(name);
    ASSERT_FALSE(limited) << name;
    EXPECT_NE(limited.error().message.find(kBest), std::string::npos);
    EXPECT_EQ(limited.error().message.find("avx2") != std::string::npos, HWY_ARCH_X86);
  }
}

TEST_F(KernelChoice, AWrongNameChangesNothing) {
  const bool used_amx = use_amx();
  const std::int64_t all = hwy::SupportedTargets();
  EXPECT_FALSE(limit_kernels("mmx"));
  EXPECT_EQ(use_amx(), used_amx);
  EXPECT_EQ(hwy::SupportedTargets(), all);
}

}  // namespace
}  // namespace slipstream::turbo
