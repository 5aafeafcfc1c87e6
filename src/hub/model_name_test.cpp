#include "hub/model_name.h"

#include <gtest/gtest.h>

namespace slipstream::hub {
namespace {

TEST(ModelName, HasAnOwnerARepositoryAndMaybeAQuant) {
  const Result<ModelName> plain = parse_model_name("Qwen/Qwen3-0.6B-GGUF");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->org, "Qwen");
  EXPECT_EQ(plain->repo, "Qwen3-0.6B-GGUF");
  EXPECT_EQ(plain->quant, "");
  EXPECT_EQ(plain->text(), "Qwen/Qwen3-0.6B-GGUF");
  const Result<ModelName> quantised = parse_model_name("a/b:q4_k_m");
  ASSERT_TRUE(quantised);
  EXPECT_EQ(quantised->repo_id(), "a/b");
  EXPECT_EQ(quantised->text(), "a/b:q4_k_m");
  EXPECT_EQ(upper_case(quantised->quant), "Q4_K_M");
}

TEST(ModelName, NothingThatWouldLeaveTheCacheIsAName) {
  for (const char* text :
       {"",     "a",     "/",     "a/",          "/b",      "../b",    "a/..",
        "a/.b", "a/b/c", "a/b:",  "a/b:../x",    "a/b:x/y", "a--b/c",  "a/b..c",
        "-a/b", "a/b-",  "a b/c", "/etc/passwd", "a/b\n",   "a/b?x=1", "a/b#x"}) {
    const Result<ModelName> model = parse_model_name(text);
    ASSERT_FALSE(model) << text;
    EXPECT_EQ(model.error().code, Code::kInvalidArgument);
  }
  EXPECT_FALSE(parse_model_name("a/" + std::string(97, 'x')));
}

}  // namespace
}  // namespace slipstream::hub
