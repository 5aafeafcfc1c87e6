#include "engine/forecast/product_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/forecast/test_gguf.h"

namespace slipstream {
namespace {

// Enough weights to be tried. The plugin does not exist: who would try the type asks for it first.
Result<std::optional<ProductTrial>> try_type(ggml_type type) {
  const TestFolder folder;
  const std::filesystem::path model = GgufMaker("llama")
                                          .sparse_matrix("blk.0.ffn_up.weight", 1024, 102400, type)
                                          .write_sparse(folder.path() / "model.gguf");
  return try_products(model, folder.path() / "no-plugin.so", 1);
}

TEST(ProductTrial, OfATypeOfWeightsNeedsThePlugin) {
  for (const ggml_type type : {GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_F16, GGML_TYPE_BF16}) {
    const auto trial = try_type(type);
    ASSERT_FALSE(trial) << ggml_type_name(type);
    EXPECT_THAT(trial.error().message, testing::HasSubstr("no-plugin.so"));
  }
}

// ggml ends the process where it has no kernel, and the file decides which types there are.
TEST(ProductTrial, OfATypeThatNoKernelMultipliesIsLeftOut) {
  for (const ggml_type type : {GGML_TYPE_I8, GGML_TYPE_I16, GGML_TYPE_I32, GGML_TYPE_I64,
                               GGML_TYPE_F64, GGML_TYPE_Q8_K, GGML_TYPE_Q8_1}) {
    const auto trial = try_type(type);
    ASSERT_TRUE(trial) << ggml_type_name(type) << ": " << trial.error().message;
    EXPECT_FALSE(trial->has_value()) << ggml_type_name(type);
  }
}

}  // namespace
}  // namespace slipstream
