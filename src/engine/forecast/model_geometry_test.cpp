#include "engine/forecast/model_geometry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/forecast/test_gguf.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

Result<ModelGeometry> geometry_of(const GgufMaker& maker) {
  const TestFolder folder;
  const Result<GgufModel> model = GgufModel::open(maker.write(folder.path() / "m.gguf"));
  if (!model) return std::unexpected(model.error());
  return read_geometry(*model);
}

ModelGeometry read(const GgufMaker& maker) {
  const Result<ModelGeometry> geometry = geometry_of(maker);
  EXPECT_TRUE(geometry) << geometry.error().message;
  return geometry.value_or(ModelGeometry{});
}

TEST(ModelGeometry, OfGroupedQueryAttention) {
  const ModelGeometry model = read(GgufMaker("llama").decoder("llama", 2, 64, 8, 2, 32));
  EXPECT_EQ(model.n_ctx_train, 4096);
  EXPECT_EQ(model.n_ctx_original, 0);
  EXPECT_EQ(model.n_vocab, 96);
  EXPECT_EQ(model.ff_in, 2 * 256);
  EXPECT_EQ(model.ff_out, 256);
  ASSERT_EQ(model.attention.size(), 2U);
  EXPECT_EQ(model.attention[1].layer, 1);
  EXPECT_EQ(model.attention[1].key_channels, 64);
  EXPECT_EQ(model.attention[1].value_channels, 64);
  EXPECT_EQ(model.attention[1].key_head_dim(), 32);
  EXPECT_FALSE(model.has_window);
}

TEST(ModelGeometry, TensorsTellOfLayersThatDiffer) {
  GgufMaker maker("gemma4");
  maker.decoder("gemma4", 1, 64, 8, 2, 32);
  maker.set("gemma4.block_count", 4).set("gemma4.attention.shared_kv_layers", 1);
  maker.set("gemma4.attention.head_count_kv", std::vector{2, 4, 0, 2});
  maker.set("gemma4.attention.sliding_window", 512);
  maker.matrix("blk.1.attn_k.weight", 64, 4 * 16);  // values are computed with the same matrix
  maker.matrix("blk.2.attn_k.weight", 64, 64);      // no KV heads: no cache
  maker.matrix("blk.3.attn_k.weight", 64, 64);      // uses the cache of another layer
  const ModelGeometry model = read(maker);
  ASSERT_EQ(model.attention.size(), 2U);
  EXPECT_EQ(model.attention[1].key_head_dim(), 16);
  EXPECT_EQ(model.attention[1].value_head_dim(), 16);
  EXPECT_TRUE(model.has_window);
}

TEST(ModelGeometry, KnowsTheContextBeforeTheModelsOwnScaling) {
  const ModelGeometry model = read(GgufMaker("llama")
                                       .decoder("llama", 1, 64, 8, 2, 32)
                                       .set("llama.rope.scaling.original_context_length", 1024));
  EXPECT_EQ(model.n_ctx_train, 4096);
  EXPECT_EQ(model.n_ctx_original, 1024);
}

TEST(ModelGeometry, OfFusedAttention) {
  GgufMaker maker("bloom");
  maker.set("bloom.block_count", 1).set("bloom.embedding_length", 64);
  maker.set("bloom.attention.head_count", 4).matrix("token_embd.weight", 64, 96);
  maker.matrix("blk.0.attn_qkv.weight", 64, 192);
  const ModelGeometry model = read(maker);
  ASSERT_EQ(model.attention.size(), 1U);
  EXPECT_EQ(model.attention[0].key_channels, 64) << "as many KV heads as heads, of 64 / 4";
  EXPECT_EQ(model.attention[0].key_head_dim(), 16);
  EXPECT_EQ(model.n_ctx_train, 0);
}

TEST(ModelGeometry, OfLatentAttention) {
  GgufMaker maker("deepseek2");
  maker.set("deepseek2.block_count", 1).set("deepseek2.embedding_length", 64);
  maker.set("deepseek2.attention.head_count", 4).set("deepseek2.attention.head_count_kv", 1);
  maker.set("deepseek2.attention.key_length", 576).set("deepseek2.attention.value_length", 512);
  maker.matrix("token_embd.weight", 64, 96).matrix("blk.0.attn_kv_a_mqa.weight", 64, 576);
  const ModelGeometry older = read(maker);
  EXPECT_EQ(older.attention.at(0).value_channels, 512);
  maker.set("deepseek2.attention.key_length_mla", 192);
  maker.set("deepseek2.attention.value_length_mla", 128);
  const ModelGeometry newer = read(maker);
  EXPECT_TRUE(newer.attention.at(0).is_latent());
  EXPECT_EQ(newer.attention.at(0).key_channels, 576);
}

TEST(ModelGeometry, OfAHybrid) {
  GgufMaker maker("qwen35");
  maker.decoder("qwen35", 1, 64, 4, 2, 32).set("qwen35.block_count", 3);
  maker.set("qwen35.ssm.conv_kernel", 4).set("qwen35.ssm.inner_size", 128);
  maker.set("qwen35.ssm.state_size", 32).set("qwen35.ssm.group_count", 2);
  for (const std::string block : {"blk.1.", "blk.2."}) {
    maker.matrix(block + "attn_qkv.weight", 64, 256).matrix(block + "ssm_out.weight", 128, 64);
  }
  const ModelGeometry model = read(maker);
  EXPECT_EQ(model.attention.size(), 1U);
  EXPECT_EQ(model.n_recurrent_layers, 2);
  EXPECT_EQ(model.state_numbers, 3 * (128 + 2 * 2 * 32) + 32 * 128);
}

TEST(ModelGeometry, OfExperts) {
  GgufMaker maker("qwen3moe");
  maker.decoder("qwen3moe", 1, 64, 4, 2, 32).set("qwen3moe.expert_used_count", 2);
  maker.matrix("blk.0.ffn_up_exps.weight", 64, 96, 8)
      .matrix("blk.0.ffn_gate_exps.weight", 64, 96, 8);
  maker.matrix("blk.0.ffn_down_exps.weight", 96, 64, 8);
  const ModelGeometry model = read(maker);
  EXPECT_EQ(model.experts_in, 2 * 2 * 96);
  EXPECT_EQ(model.experts_out, 2 * 96);
}

TEST(ModelGeometry, RefusesModelsWithoutACache) {
  GgufMaker mamba("mamba");
  mamba.set("mamba.block_count", 1).set("mamba.embedding_length", 64);
  mamba.matrix("token_embd.weight", 64, 96).matrix("blk.0.ssm_in.weight", 64, 64);
  for (const Result<ModelGeometry>& model :
       {geometry_of(mamba), geometry_of(GgufMaker("bert").decoder("bert", 1, 64, 4, 4, 16)),
        geometry_of(GgufMaker("deepseek4").decoder("deepseek4", 1, 64, 4, 4, 16))}) {
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, Code::kUnsupported);
  }
  EXPECT_THAT(geometry_of(mamba).error().message, HasSubstr("no attention"));
}

TEST(ModelGeometry, RefusesSizesThatCannotBe) {
  const auto with = [](const std::string& key, std::int64_t value) {
    GgufMaker maker("llama");
    maker.decoder("llama", 1, 64, 4, 2, 32).set(key, value);
    return geometry_of(maker);
  };
  ASSERT_TRUE(with("llama.unknown", -1));
  ASSERT_TRUE(with("llama.context_length", std::int64_t{1} << 62));
  for (const std::string key :
       {"llama.block_count", "llama.embedding_length", "llama.attention.head_count",
        "llama.attention.key_length", "llama.expert_used_count"}) {
    for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{1} << 40}) {
      const Result<ModelGeometry> model = with(key, value);
      ASSERT_FALSE(model) << key;
      EXPECT_EQ(model.error().code, Code::kCorrupt) << key;
    }
  }
  EXPECT_FALSE(with("llama.attention.head_count", kDimensionMax)) << "of 32 channels each";
  EXPECT_FALSE(with("llama.attention.head_count_kv", 3)) << "64 channels for 3 heads";
  EXPECT_FALSE(with("llama.block_count", 0));
}

}  // namespace
}  // namespace slipstream
