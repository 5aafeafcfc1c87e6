#include "device/experts/expert_options.h"

#include <gtest/gtest.h>

namespace slipstream::turbo {
namespace {

TEST(ExpertOptions, ASizeAloneIsEnough) {
  const Result<ExpertOptions> options = parse_expert_options("4G");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->cache_bytes, std::uint64_t{4} << 30);
  EXPECT_EQ(options->policy, CachePolicy::kAutomatic);
  EXPECT_EQ(options->way, ReadMethod::kUringDirect);
  EXPECT_TRUE(options->looks_ahead);
}

TEST(ExpertOptions, EverythingCanBeNamed) {
  const Result<ExpertOptions> options =
      parse_expert_options("cache=512M,policy=lfu,io=pread,lookahead=off,trace=/tmp/t,pin=/tmp/p");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->cache_bytes, std::uint64_t{512} << 20);
  EXPECT_EQ(options->policy, CachePolicy::kLeastOften);
  EXPECT_EQ(options->way, ReadMethod::kPread);
  EXPECT_FALSE(options->looks_ahead);
  EXPECT_EQ(options->trace_path, "/tmp/t");
  EXPECT_EQ(options->pin_path, "/tmp/p");
}

TEST(ExpertOptions, WhatIsWrongIsNamed) {
  for (const char* text : {"", "4X", "-1", "0", "4GB", "99999999999T", "policy=lru",
                           "4G,policy=new", "4G,io=fast", "4G,lookahead=maybe", "4G,colour=red"}) {
    const Result<ExpertOptions> options = parse_expert_options(text);
    ASSERT_FALSE(options) << text;
    EXPECT_EQ(options.error().code, Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace slipstream::turbo
