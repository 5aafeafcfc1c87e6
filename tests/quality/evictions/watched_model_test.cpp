#include "watched_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "bench/quality/plain_text.h"

namespace slipstream::evictions {
namespace {

constexpr std::size_t kTokens = 700;  // more than one step

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

class WatchedModelTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<WatchedModel> created = WatchedModel::create(SLIPSTREAM_NEEDLE_MODEL, 1024, 1);
    ASSERT_TRUE(created) << created.error().message;
    model = std::make_unique<WatchedModel>(std::move(*created));
    tokens = *model->vocabulary().tokenize(quality::plain_text(8000), false, false);
    ASSERT_GT(tokens.size(), kTokens + 20);
    text = std::span(tokens).first(kTokens);
    more = std::span(tokens).subspan(kTokens, 20);
  }

  std::unique_ptr<WatchedModel> model;
  std::vector<Token> tokens;
  std::span<const Token> text;
  std::span<const Token> more;
};

TEST_F(WatchedModelTest, EachQueryGivesAttentionOfOne) {
  Result<AttentionRecord> record = model->read_recording(text);
  ASSERT_TRUE(record) << record.error().message;
  const AttentionShape& shape = record->shape;
  EXPECT_EQ(shape.n_layers, 4U);
  EXPECT_EQ(shape.n_kv_heads, 2U);
  EXPECT_EQ(shape.n_channels, 128U);
  EXPECT_EQ(shape.rope_base, 1e6);
  for (std::size_t layer = 0; layer < shape.n_layers; ++layer) {
    for (std::size_t head = 0; head < shape.n_heads; ++head) {
      double mass = 0;
      double window = 0;
      for (const float one : record->row(record->mass, layer, head)) mass += one;
      for (const float one : record->row(record->window, layer, head)) window += one;
      EXPECT_NEAR(mass, kTokens, 0.1);
      EXPECT_NEAR(window, kWindowTokens, 0.1);
    }
  }
}

// A head that hides cells sees what it would see if they were gone from the cache.
TEST_F(WatchedModelTest, HiddenIsRemoved) {
  Result<AttentionRecord> record = model->read_recording(text);
  ASSERT_TRUE(record) << record.error().message;
  const Kept kept = keep(Policy::kRandom, Unit::kCell, *record, kTokens / 2, 1);
  const auto everything = model->logits_after(more, nullptr);
  ASSERT_TRUE(model->read(text));
  const auto hidden = model->logits_after(more, &kept);
  ASSERT_TRUE(model->read(text));
  for (std::size_t cell = 0; cell < kTokens; ++cell) {
    const auto at = static_cast<llama_pos>(cell);
    if (!kept[0][cell]) {
      ASSERT_TRUE(llama_memory_seq_rm(llama_get_memory(model->context()), 0, at, at + 1));
    }
  }
  const auto removed = model->logits_after(more, nullptr);
  ASSERT_TRUE(everything && hidden && removed);
  // What comes next stands in cells that were removed, so sums have another order.
  EXPECT_LT(largest_difference(*hidden, *removed), 0.01);
  EXPECT_GT(largest_difference(*hidden, *everything), 0.5);
}

TEST_F(WatchedModelTest, AnAnswerIsForgotten) {
  ASSERT_TRUE(model->read(text));
  const Result<std::string> first = model->answer(more, nullptr, 8);
  const Result<std::string> again = model->answer(more, nullptr, 8);
  ASSERT_TRUE(first && again);
  EXPECT_FALSE(first->empty());
  EXPECT_EQ(*first, *again);
}

}  // namespace
}  // namespace slipstream::evictions
