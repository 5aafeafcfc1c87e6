#include "engine/forecast/memory_forecast.h"

#include <ggml-backend.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/forecast/test_gguf.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kOneMiB = 1 << 20;

class Forecast : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (ggml_backend_dev_count() == 0) ggml_backend_load_all();
  }
};

TEST_F(Forecast, OfTheNeedleModel) {
  const Result<MemoryForecast> f16 = forecast(NEEDLE_MODEL, KvScheme{}, {.n_ctx = 4096});
  ASSERT_TRUE(f16) << f16.error().message;
  EXPECT_EQ(f16->kv_bytes, 16 * kOneMiB);
  EXPECT_NEAR(static_cast<double>(f16->weights_bytes) / kOneMiB, 9.5, 1.0);
  EXPECT_EQ(f16->total(),
            f16->weights_bytes + f16->kv_bytes + f16->compute_bytes + f16->other_bytes);
  EXPECT_EQ(f16->resident(), f16->total() + f16->idle_bytes);
  const Result<MemoryForecast> turbo =
      forecast(NEEDLE_MODEL, *parse_kv_scheme("turbo4"), {.n_ctx = 4096});
  ASSERT_TRUE(turbo) << turbo.error().message;
  // 256 cells of 4 layers in 8 bits beside their codes, and a 16-bit scale for each of 2 heads.
  constexpr std::uint64_t kPrecise = 256UL * 4 * 2 * (256 + 2 * 2);
  EXPECT_EQ(turbo->kv_bytes, 33 * kOneMiB / 8 + kPrecise);
  EXPECT_EQ(turbo->scheme, "turbo4");
}

TEST_F(Forecast, TakesTheModelsContextAndRoundsItAsLlamaDoes) {
  EXPECT_EQ(forecast(NEEDLE_MODEL, KvScheme{}, {.n_ctx = 1000})->n_ctx, 1024);
  const Result<MemoryForecast> own = forecast(NEEDLE_MODEL, KvScheme{}, {});
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_GE(own->n_ctx, 3072);
  const TestFolder folder;
  GgufMaker silent("llama");
  silent.decoder("llama", 1, 64, 4, 2, 32).set("llama.context_length", 0);
  const Result<MemoryForecast> unknown =
      forecast(silent.write(folder.path() / "m"), KvScheme{}, {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kInvalidArgument);
}

TEST_F(Forecast, RefusesContextsThatNobodyHas) {
  for (const ContextShape& shape :
       {ContextShape{.n_ctx = -1}, ContextShape{.n_ctx = std::int64_t{1} << 40},
        ContextShape{.n_ctx = 256, .n_sequences_max = 0}, ContextShape{.n_ctx = 256, .n_ubatch = 0},
        ContextShape{.n_ctx = 256, .n_threads = 1 << 20}}) {
    const Result<MemoryForecast> refused = forecast(NEEDLE_MODEL, KvScheme{}, shape);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  }
}

TEST_F(Forecast, ErrorsNameTheFile) {
  const TestFolder folder;
  const std::filesystem::path path =
      GgufMaker("bert").decoder("bert", 1, 64, 4, 4, 16).write(folder.path() / "bert.gguf");
  EXPECT_THAT(forecast(path, KvScheme{}, {}).error().message, HasSubstr("bert.gguf: "));
  EXPECT_EQ(forecast("/nonexistent", KvScheme{}, {}).error().code, Code::kNotFound);
}

TEST(MemoryForecast, IsDescribedForPeople) {
  const MemoryForecast forecast{.scheme = "turbo8v4",
                                .n_ctx = 32768,
                                .weights_bytes = 4915 * kOneMiB,
                                .kv_bytes = 1700 * kOneMiB,
                                .compute_bytes = 300 * kOneMiB,
                                .other_bytes = 40 * kOneMiB,
                                .idle_bytes = 4096 * kOneMiB};
  EXPECT_EQ(describe(forecast),
            "weights   4.8 GiB\n"
            "KV cache  1.7 GiB  32768 tokens, turbo8v4\n"
            "compute   300 MiB  results of a batch\n"
            "other      40 MiB  vocabulary, notes, threads\n"
            "total     6.8 GiB\n"
            "and       4.0 GiB  of the file, only while nobody else wants the memory\n");
}

}  // namespace
}  // namespace slipstream
