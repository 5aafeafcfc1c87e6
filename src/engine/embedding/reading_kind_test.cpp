#include "engine/embedding/reading_kind.h"

#include <gtest/gtest.h>

#include "engine/embedding/test_ranker.h"
#include "engine/forecast/test_gguf.h"

namespace slipstream {
namespace {

class ReadingKindTest : public testing::Test {
 protected:
  // pooling: -1 for a file that says nothing of it.
  [[nodiscard]] std::optional<ReadingKind> kind_of(const std::string& architecture, int pooling) {
    GgufMaker maker(architecture);
    if (pooling >= 0) maker.set(architecture + ".pooling_type", pooling);
    const auto model = GgufModel::open(maker.write(folder_.path() / "model.gguf"));
    EXPECT_TRUE(model) << model.error().message;
    return model ? reading_kind(*model) : std::nullopt;
  }

  TestFolder folder_;
};

TEST_F(ReadingKindTest, ThePoolingOfAFileSaysIt) {
  EXPECT_EQ(kind_of("qwen3", -1), std::nullopt);
  EXPECT_EQ(kind_of("qwen3", LLAMA_POOLING_TYPE_NONE), std::nullopt);
  EXPECT_EQ(kind_of("qwen3", LLAMA_POOLING_TYPE_LAST), ReadingKind::kVectors);
  EXPECT_EQ(kind_of("qwen3", LLAMA_POOLING_TYPE_RANK), ReadingKind::kRanks);
  EXPECT_EQ(kind_of("bert", LLAMA_POOLING_TYPE_RANK), ReadingKind::kRanks);
  EXPECT_EQ(kind_of("bert", LLAMA_POOLING_TYPE_CLS), ReadingKind::kVectors);
}

TEST_F(ReadingKindTest, BertOnlyReadsWhateverItsFileSays) {
  EXPECT_EQ(kind_of("nomic-bert", -1), ReadingKind::kVectors);
  EXPECT_EQ(kind_of("modern-bert", LLAMA_POOLING_TYPE_NONE), ReadingKind::kVectors);
}

TEST_F(ReadingKindTest, LengthsAreThoseOfTrainingOrLess) {
  const std::filesystem::path path = folder_.path() / "ranker.gguf";
  TestRanker::write(path);
  const auto model = GgufModel::open(path);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(read_tokens_max(*model, 0), TestRanker::kTokensMax);
  EXPECT_EQ(read_tokens_max(*model, 16), 16);
  EXPECT_EQ(read_tokens_max(*model, 100'000), TestRanker::kTokensMax);
  // Longer texts take more memory, and masks their square.
  EXPECT_GT(reading_bytes(*model, 20'000), reading_bytes(*model, 10'000) * 2);
}

}  // namespace
}  // namespace slipstream
