#include "device/fit/profile.h"

#include <gtest/gtest.h>

#include "device/fit/small_graph_test_support.h"

namespace slipstream::turbo {
namespace {

class ProfileTest : public testing::Test {
 protected:
  void SetUp() override { ggml_log_set(keep_line, &lines_); }
  void TearDown() override { ggml_log_set(nullptr, nullptr); }

  static KeyProfile fitted(SmallGraph& graph) {
    const auto run = std::make_shared<FitRun>(
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name() +
        ".keys");
    graph.compute(run);
    return run->profile();
  }
  static void keep_line(ggml_log_level /*level*/, const char* line, void* lines) {
    static_cast<std::string*>(lines)->append(line);
  }

  SmallGraph graph_{rope(GGML_ROPE_TYPE_NEOX)};
  std::string lines_;
};

TEST_F(ProfileTest, IsUsedForTheModelItWasMadeFor) {
  const KeyProfile profile = fitted(graph_);
  const FittedKeys keys(profile, "the profile");
  const KeyBases* bases = keys.bases_of(graph_.attention, 0);
  ASSERT_NE(bases, nullptr);
  ASSERT_EQ(bases->size(), 2U);
  EXPECT_EQ((*bases)[1].directions, profile[0].heads[1].directions);
  EXPECT_EQ((*bases)[1].mean, profile[0].heads[1].mean);
  EXPECT_EQ(keys.bases_of(graph_.attention, 1), nullptr);
}

TEST_F(ProfileTest, IsNotUsedForAnotherModel) {
  const FittedKeys keys(fitted(graph_), "the profile");
  SmallGraph::set(graph_.norm, std::vector<float>(SmallGraph::kDim, 2));
  lines_.clear();
  EXPECT_EQ(keys.bases_of(graph_.attention, 0), nullptr);
  EXPECT_EQ(keys.bases_of(graph_.attention, 0), nullptr);
  EXPECT_TRUE(lines_.contains("was made for another model")) << lines_;
  EXPECT_EQ(std::ranges::count(lines_, '\n'), 1) << lines_;
}

TEST_F(ProfileTest, IsNotUsedForOtherShapes) {
  KeyProfile profile = fitted(graph_);
  profile[0].heads.pop_back();
  EXPECT_EQ(FittedKeys(profile, "the profile").bases_of(graph_.attention, 0), nullptr);
  EXPECT_TRUE(lines_.contains("2 KV heads of 48 where the profile has 1 of 48")) << lines_;
}

TEST_F(ProfileTest, AFileThatCannotBeReadIsNoProfile) {
  EXPECT_FALSE(FittedKeys::read("/nonexistent.keys").has_value());
}

}  // namespace
}  // namespace slipstream::turbo
