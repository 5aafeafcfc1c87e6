#include "engine/forecast/context_bytes.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

KvScheme scheme_named(std::string_view name) { return parse_kv_scheme(name).value_or(KvScheme{}); }

// Qwen3-0.6B: 28 layers, 16 heads and 8 KV heads of 128.
ModelGeometry qwen3() {
  ModelGeometry model;
  model.architecture = "qwen3";
  model.n_ctx_train = 40960;
  model.n_layers = 28;
  model.n_tensors = 310;
  model.n_embd = 1024;
  model.n_vocab = 151936;
  model.ff_in = 2 * 3072;
  model.ff_out = 3072;
  for (int layer = 0; layer < 28; ++layer) {
    model.attention.push_back({.layer = layer,
                               .n_heads = 16,
                               .n_kv_heads = 8,
                               .key_channels = 1024,
                               .value_channels = 1024});
  }
  return model;
}

constexpr std::uint64_t kMiB = 1 << 20;

TEST(ContextBytes, OfTheCacheAreWhatLlamaReports) {
  const ContextShape shape{.n_ctx = 4096};
  // 256 cells of 28 layers in 8 bits beside their codes, and a 16-bit scale for each of 8 heads.
  constexpr std::uint64_t kPrecise = 256 * 28 * (1024 + 8 * 2);
  EXPECT_EQ(cache_bytes(qwen3(), scheme_named("f16"), shape), 448 * kMiB);
  EXPECT_EQ(cache_bytes(qwen3(), scheme_named("q8_0"), shape), 238 * kMiB);
  EXPECT_EQ(cache_bytes(qwen3(), scheme_named("turbo4"), shape), 231 * kMiB / 2 + 2 * kPrecise);
  EXPECT_EQ(cache_bytes(qwen3(), scheme_named("turbo0v0"), shape), 448 * kMiB);
  EXPECT_EQ(cache_bytes(qwen3(), scheme_named("turbo0v4"), shape),
            224 * kMiB + 231 * kMiB / 4 + kPrecise);
  EXPECT_EQ(cache_bytes(qwen3(), scheme_named("turbo4,0-13=f16"), shape),
            224 * kMiB + 231 * kMiB / 4 + kPrecise);
}

TEST(ContextBytes, CodesThatMayLieInAFileCountUpToTheMemoryForThem) {
  const ContextShape all{.n_ctx = 4096};
  const ContextShape cold{.n_ctx = 4096, .kv_memory_bytes = 10 * kMiB};
  const ContextShape roomy{.n_ctx = 4096, .kv_memory_bytes = 1000 * kMiB};
  const KvScheme limited = scheme_named("turbo4,attend=1024");
  constexpr std::uint64_t kCodes = 112 * kMiB;  // four bits of each number
  EXPECT_EQ(cache_bytes(qwen3(), limited, cold),
            cache_bytes(qwen3(), limited, all) - kCodes + 10 * kMiB);
  EXPECT_EQ(cache_bytes(qwen3(), limited, roomy), cache_bytes(qwen3(), limited, all));
  // Queries of a layer with f16 keys read all values, which stay in memory.
  const KvScheme half = scheme_named("turbo4,attend=1024,0-13=turbo0v4");
  EXPECT_EQ(cache_bytes(qwen3(), half, cold),
            cache_bytes(qwen3(), half, all) - kCodes / 2 + 10 * kMiB);
}

TEST(ContextBytes, WhatThePluginCannotCompressStaysF16) {
  const ContextShape shape{.n_ctx = 256};
  const auto is_f16 = [&](const AttentionLayer& layer) {
    ModelGeometry model = qwen3();
    model.attention = {layer};
    return cache_bytes(model, scheme_named("turbo4"), shape) ==
           cache_bytes(model, KvScheme{}, shape);
  };
  AttentionLayer layer = qwen3().attention[0];
  EXPECT_FALSE(is_f16(layer));
  layer.value_channels = 0;
  EXPECT_TRUE(is_f16(layer)) << "latent attention";
  layer = qwen3().attention[0];
  layer.value_channels = 8 * 72;
  EXPECT_TRUE(is_f16(layer)) << "a head of 72";
  layer = qwen3().attention[0];
  layer.n_heads = 8 * 512;
  EXPECT_TRUE(is_f16(layer)) << "512 query heads share a KV head";
}

TEST(ContextBytes, QuantisedCachesNeedWholeBlocks) {
  ModelGeometry model = qwen3();
  EXPECT_TRUE(check_cache(model, scheme_named("q8_0")));
  model.attention[3].key_channels = 8 * 80;
  EXPECT_TRUE(check_cache(model, scheme_named("f16")));
  const Result<void> refused = check_cache(model, scheme_named("q8_0"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupported);
}

TEST(ContextBytes, RecurrentStatesCountForEverySequence) {
  ModelGeometry model = qwen3();
  model.n_recurrent_layers = 3;
  model.state_numbers = 1000;
  const auto bytes = [&](std::int64_t n_sequences) {
    return cache_bytes(model, KvScheme{}, {.n_ctx = 256, .n_sequences_max = n_sequences});
  };
  EXPECT_EQ(bytes(5) - bytes(1), 4 * 3 * 1000 * 4U);
}

TEST(ContextBytes, MasksGrowWithTheContextAndTheBatch) {
  ModelGeometry model = qwen3();
  const auto bytes = [&](std::int64_t n_ctx) {
    return compute_bytes(model, {.n_ctx = n_ctx, .n_ubatch = 512});
  };
  EXPECT_EQ(bytes(8192) - bytes(4096), 4096 * 512 * 2U);
  model.has_window = true;
  EXPECT_EQ(bytes(8192) - bytes(4096), 2 * 4096 * 512 * 2U);
}

// sched_reserve of libllama 0.7.0 reports 32.02 MiB for 4 outputs of one sequence; converting the
// inputs of products takes a little more.
TEST(ContextBytes, OfResultsAreNearWhatLlamaReserves) {
  const double mib =
      static_cast<double>(compute_bytes(qwen3(), {.n_ctx = 4096, .n_sequences_max = 4})) / kMiB;
  EXPECT_NEAR(mib, 35, 4);
}

TEST(ContextBytes, NotesGrowWithCellsTokensAndThreads) {
  const ModelGeometry model = qwen3();
  const ContextShape small{.n_ctx = 4096};
  const auto grows = [&](const ContextShape& larger) {
    return notes_bytes(model, KvScheme{}, larger) - notes_bytes(model, KvScheme{}, small);
  };
  EXPECT_EQ(grows({.n_ctx = 8192}), 4096 * 150U);
  EXPECT_GT(grows({.n_ctx = 4096, .n_threads = 64}), 10 * kMiB);
  EXPECT_EQ(grows({.n_ctx = 4096, .n_sequences_max = 2}), 151936 * 4U);
  EXPECT_EQ(grows({.n_ctx = 4096, .n_outputs_max = 3}), 2 * 151936 * 4U);
  EXPECT_EQ(grows({.n_ctx = 4096, .has_drafts = true}), 4096 * 20U);
}

}  // namespace
}  // namespace slipstream
