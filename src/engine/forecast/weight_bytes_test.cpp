#include "engine/forecast/weight_bytes.h"

#include <ggml-backend.h>
#include <gtest/gtest.h>

#include "engine/forecast/test_gguf.h"

namespace slipstream {
namespace {

class Weights : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (ggml_backend_dev_count() == 0) ggml_backend_load_all();
  }
  WeightBytes of(const GgufMaker& maker, std::int64_t n_experts_used = 0) {
    const Result<GgufModel> model = GgufModel::open(maker.write(folder_.path() / "m.gguf"));
    EXPECT_TRUE(model) << model.error().message;
    if (!model) return {};
    file_bytes_ = 0;
    for (const GgufTensor& tensor : model->tensors()) file_bytes_ += tensor.n_bytes;
    const Result<WeightBytes> bytes = weight_bytes(*model, n_experts_used);
    EXPECT_TRUE(bytes) << bytes.error().message;
    return bytes.value_or(WeightBytes{});
  }

  TestFolder folder_;
  std::uint64_t file_bytes_ = 0;
};

TEST_F(Weights, InF32AreUsedWhereTheyAreMapped) {
  const WeightBytes bytes = of(GgufMaker("llama").decoder("llama", 2, 64, 4, 2, 32));
  EXPECT_EQ(bytes.copied, 0U);
  EXPECT_EQ(bytes.mapped, file_bytes_);
  EXPECT_EQ(bytes.idle, 0U);
}

// Whether there is a better layout for them depends on the machine; no layout is smaller.
TEST_F(Weights, ThatAreCopiedLeaveTheirOriginalsIdle) {
  GgufMaker maker("llama");
  maker.matrix("a_norm.weight", 256, 1).matrix("blk.0.ffn_up.weight", 256, 256, 1, GGML_TYPE_Q8_0);
  maker.matrix("z_norm.weight", 256, 1);
  const WeightBytes bytes = of(maker);
  constexpr std::uint64_t kMatrix = 256 * 256 / 32 * 34;
  constexpr std::uint64_t kNorms = 2 * 256 * sizeof(float);
  if (bytes.copied == 0) {
    EXPECT_EQ(bytes.mapped, kMatrix + kNorms);
  } else {
    EXPECT_GE(bytes.copied, kMatrix);
    EXPECT_EQ(bytes.mapped, kNorms);
    EXPECT_EQ(bytes.idle, kMatrix);
  }
}

TEST_F(Weights, TiedEmbeddingsAreCopiedForTheOutputOnly) {
  GgufMaker maker("llama");
  maker.matrix("token_embd.weight", 256, 512, 1, GGML_TYPE_Q8_0);
  const WeightBytes tied = of(maker);
  EXPECT_EQ(tied.mapped, file_bytes_) << "the table is used where it is mapped";
  maker.matrix("output.weight", 256, 512, 1, GGML_TYPE_Q8_0);
  EXPECT_EQ(of(maker).copied, tied.copied);
}

TEST_F(Weights, OfExpertsCanBeAskedFor) {
  GgufMaker maker("qwen3moe");
  maker.matrix("blk.0.ffn_up_exps.weight", 256, 256, 4, GGML_TYPE_Q4_0);
  const WeightBytes bytes = of(maker, 2);
  EXPECT_GE(bytes.copied + bytes.mapped, file_bytes_);
  EXPECT_EQ(of(maker, 0).mapped, file_bytes_) << "a file that does not say how many are used";
}

}  // namespace
}  // namespace slipstream
