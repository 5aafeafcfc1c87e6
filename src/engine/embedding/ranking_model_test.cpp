#include "engine/embedding/ranking_model.h"

#include <gmock/gmock.h>

#include <cmath>

#include "engine/embedding/embedding_model.h"
#include "engine/embedding/test_ranker.h"
#include "engine/forecast/test_gguf.h"

namespace slipstream {
namespace {

class RankingModelTest : public testing::Test {
 protected:
  RankingModelTest() {
    TestRanker::write(path());
    Result<std::unique_ptr<RankingModel>> model =
        RankingModel::load({.path = path(), .n_threads = 1});
    EXPECT_TRUE(model) << model.error().message;
    if (model) model_ = std::move(*model);
  }
  [[nodiscard]] std::filesystem::path path() const { return folder_.path() / "ranker.gguf"; }
  [[nodiscard]] float rank(const std::string& query, const std::string& text) const {
    const auto ranks = model_->rank(query, std::span(&text, 1));
    EXPECT_TRUE(ranks) << ranks.error().message;
    return ranks ? ranks->front() : 0;
  }

  TestFolder folder_;
  std::unique_ptr<RankingModel> model_;
};

TEST_F(RankingModelTest, ReadsTheQueryAndTheTextTogether) {
  const float rank_of_pair = rank("heron", "the river");
  EXPECT_TRUE(std::isfinite(rank_of_pair));
  EXPECT_GT(std::abs(rank_of_pair - rank("heron", "the oven")), 1e-4);
  EXPECT_GT(std::abs(rank_of_pair - rank("bread", "the river")), 1e-4);
}

TEST_F(RankingModelTest, PairsOfABatchDoNotSeeEachOther) {
  const std::vector<std::string> texts = {"the river", "bread in the oven", "",
                                          "heron heron heron"};
  const auto together = model_->rank("heron in the river", texts);
  ASSERT_TRUE(together) << together.error().message;
  ASSERT_EQ(together->size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_NEAR((*together)[i], rank("heron in the river", texts[i]), 1e-4) << texts[i];
  }
}

TEST_F(RankingModelTest, LongTextsAndQueriesAreCut) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "river ";
  EXPECT_FLOAT_EQ(rank("heron", text), rank("heron", text + "bread"));
  EXPECT_FLOAT_EQ(rank(text, "bread"), rank(text + "heron", "bread"));
  // A query leaves room for the text.
  EXPECT_NE(rank(text, "bread"), rank(text, "heron"));
}

TEST_F(RankingModelTest, WholePairsAreNotCut) {
  const auto model =
      ReadingModel::load({.path = path(), .n_threads = 1}, ReadingModel::Reads::kAny);
  ASSERT_TRUE(model) << model.error().message;
  const RankingPairs pairs(**model);
  const auto pair = pairs.whole("heron", "the river");
  ASSERT_TRUE(pair);
  EXPECT_EQ(*pair, *pairs.cut("heron", "the river"));
  std::string text;
  for (int i = 0; i < 100; ++i) text += "river ";
  EXPECT_EQ(pairs.whole("heron", text)->size(), 100U + pair->size() - 2U);
  EXPECT_EQ(std::ssize(*pairs.cut("heron", text)), TestRanker::kTokensMax);
}

TEST_F(RankingModelTest, ARankerMakesNoVectorsAndTheOtherWayRound) {
  const auto embedder = EmbeddingModel::load({.path = path()});
  ASSERT_FALSE(embedder);
  EXPECT_EQ(embedder.error().code, Code::kUnsupported);
  const auto ranker = RankingModel::load({.path = NEEDLE_MODEL});
  ASSERT_FALSE(ranker);
  EXPECT_EQ(ranker.error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace slipstream
