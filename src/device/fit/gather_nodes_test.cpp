#include "device/fit/gather_nodes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "device/fit/small_graph_test_support.h"

namespace slipstream::turbo {
namespace {

// Each test has its own file name, because tests run at the same time.
std::shared_ptr<FitRun> new_fit_run() {
  return std::make_shared<FitRun>(testing::TempDir() + "/" +
                                  testing::UnitTest::GetInstance()->current_test_info()->name() +
                                  ".keys");
}

class GatherNodesTest : public testing::Test {
 protected:
  void TearDown() override { (void)run_->end(); }

  // The profile fitted from one computation of the graph.
  static KeyProfile fitted(SmallGraph& graph) {
    const std::shared_ptr<FitRun> run = new_fit_run();
    graph.compute(run);
    return run->profile();
  }

  std::shared_ptr<FitRun> run_ = new_fit_run();
};

ggml_tensor* turn_many(ggml_context* context, ggml_tensor* vectors, ggml_tensor* positions) {
  std::array<int, GGML_MROPE_SECTIONS> sections = {8, 8, 8, 0};
  return ggml_rope_multi(context, vectors, positions, nullptr, SmallGraph::kDim, sections.data(),
                         GGML_ROPE_TYPE_MROPE, 0, 1e12F, 1, 0, 1, 0, 0);
}

TEST_F(GatherNodesTest, LooksAtKeysAllOverAContext) {
  for (const int mode : {GGML_ROPE_TYPE_NORMAL, GGML_ROPE_TYPE_NEOX}) {
    SmallGraph graph(rope(mode));
    const KeyProfile profile = fitted(graph);
    ASSERT_EQ(profile.size(), 1U);
    const std::vector<float>& mean = profile[0].heads[1].mean;
    // All components of the keys have mean 1 before RoPE turns them.
    EXPECT_NEAR(mean[0], 0, 0.25);
    EXPECT_NEAR(mean[mode == GGML_ROPE_TYPE_NEOX ? 24 : 1], 0, 0.25);
    EXPECT_NEAR(mean[47], 1, 0.25);
    EXPECT_NEAR(mean[mode == GGML_ROPE_TYPE_NEOX ? 23 : 46], 1, 0.25);
  }
}

TEST_F(GatherNodesTest, WhereTheTokensAreDoesNotMatter) {
  for (const auto& [turn, n_lists] :
       {std::pair{rope(GGML_ROPE_TYPE_NORMAL), 1}, std::pair{rope(GGML_ROPE_TYPE_NEOX), 1},
        std::pair{SmallGraph::Turn(turn_many), 4}}) {
    SmallGraph graph(turn, n_lists);
    graph.place(64);
    const std::vector<std::byte> near = encode_profile(fitted(graph));
    graph.place(30000);
    EXPECT_EQ(encode_profile(fitted(graph)), near);
  }
}

TEST_F(GatherNodesTest, FirstTokensAreLeftOut) {
  SmallGraph graph(rope(GGML_ROPE_TYPE_NORMAL));
  graph.place(0);
  graph.compute(run_);
  KeyMoments* moments = run_->layer(graph.attention, 0);
  ASSERT_NE(moments, nullptr);
  EXPECT_EQ(moments->head(0).n_keys, SmallGraph::kTokens - 64);
  EXPECT_EQ(moments->head(1).n_queries, (SmallGraph::kTokens - 64) * 2);
}

TEST_F(GatherNodesTest, VectorsWithoutPositionsAreTakenAsTheyAre) {
  SmallGraph graph([](ggml_context*, ggml_tensor* vectors, ggml_tensor*) { return vectors; });
  graph.compute(run_);
  const HeadMoments moments = run_->layer(graph.attention, 0)->head(1);
  ASSERT_EQ(moments.n_keys, SmallGraph::kTokens);
  // Component 3 of a vector. The vectors are contiguous.
  const auto component = [](const ggml_tensor* vectors, std::int64_t head, std::int64_t token) {
    return static_cast<const float*>(
        vectors->data)[(token * vectors->ne[1] + head) * SmallGraph::kDim + 3];
  };
  double sum = 0;
  double square = 0;
  for (std::int64_t token = 0; token < SmallGraph::kTokens; ++token) {
    sum += double{component(graph.keys, 1, token)};
    for (const int query_head : {2, 3}) {
      square += std::pow(double{component(graph.queries, query_head, token)}, 2);
    }
  }
  EXPECT_NEAR(moments.key_sum[3], sum, 1e-3);
  EXPECT_NEAR(moments.query_second(3, 3), square, 1e-2);
}

TEST_F(GatherNodesTest, ScalingAfterRopeCounts) {
  const SmallGraph::Turn turn = rope(GGML_ROPE_TYPE_NORMAL);
  SmallGraph graph(turn);
  SmallGraph scaled([&](ggml_context* context, ggml_tensor* vectors, ggml_tensor* positions) {
    return ggml_scale(context, turn(context, vectors, positions), 3);
  });
  const KeyProfile once = fitted(graph);
  const KeyProfile thrice = fitted(scaled);
  ASSERT_EQ(thrice.size(), 1U);
  EXPECT_NEAR(thrice[0].heads[0].mean[47], 3 * once[0].heads[0].mean[47], 1e-4);
}

TEST_F(GatherNodesTest, ANormAfterRopeIsRefused) {
  const SmallGraph::Turn turn = rope(GGML_ROPE_TYPE_NORMAL);
  SmallGraph graph([&](ggml_context* context, ggml_tensor* vectors, ggml_tensor* positions) {
    return ggml_rms_norm(context, turn(context, vectors, positions), 1e-6F);
  });
  EXPECT_TRUE(fitted(graph).empty());
}

TEST_F(GatherNodesTest, AttentionGivesWhatItGaveBefore) {
  const auto in_place = [](ggml_context* context, ggml_tensor* vectors, ggml_tensor* positions) {
    return ggml_rope_ext_inplace(context, vectors, positions, nullptr, SmallGraph::kDim, 0, 0, 1e4F,
                                 1, 0, 1, 0, 0);
  };
  SmallGraph graph(in_place);
  const std::vector<float> looked_at = graph.compute(run_);
  EXPECT_EQ(graph.compute(), looked_at);
}

TEST_F(GatherNodesTest, ASecondModelIsLeftAlone) {
  SmallGraph graph(rope(GGML_ROPE_TYPE_NORMAL));
  graph.compute(run_);
  SmallGraph other(rope(GGML_ROPE_TYPE_NORMAL));
  SmallGraph::set(other.norm, std::vector<float>(SmallGraph::kDim, 2));
  other.compute(run_);
  EXPECT_EQ(run_->layer(other.attention, 0), nullptr);
  EXPECT_EQ(run_->layer(graph.attention, 0)->head(0).n_keys, SmallGraph::kTokens);
}

}  // namespace
}  // namespace slipstream::turbo
