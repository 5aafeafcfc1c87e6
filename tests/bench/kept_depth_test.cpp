// A depth that is filled by repeating has the codes of what was computed, bit by bit, whether all of
// them are in memory or most in a file. It needs the plugin, so it is no unit test.
#include "bench/speed/kept_depth.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/state/state_blob.h"

namespace slipstream::bench {
namespace {

constexpr int kKept = 300;  // neither whole tiles nor whole chunks
constexpr int kAll = 1000;

Model load(const std::string& kv, const std::string& kv_memory) {
  Result<Model> model = Model::load({.path = NEEDLE_MODEL,
                                     .kv = kv,
                                     .plugin = TURBO_PLUGIN,
                                     .kv_memory = kv_memory,
                                     .n_cells = 1280,
                                     .n_sequences_max = 2,
                                     .n_step_tokens_max = 128,
                                     .n_outputs_max = 2,
                                     .n_threads = 1,
                                     .shares_cells = true,
                                     .on_progress = {}});
  if (!model) throw std::runtime_error(model.error().message);
  return std::move(*model);
}

void compute(llama_context* context, int n_tokens) {
  for (int first = 0; first < n_tokens; first += 100) {
    std::vector<llama_token> tokens(100);
    for (int i = 0; i < 100; ++i) tokens[static_cast<std::size_t>(i)] = 5 + (first + i) * 7 % 500;
    ASSERT_EQ(llama_decode(context, llama_batch_get_one(tokens.data(), 100)), 0);
  }
}

struct PackedRows {
  std::vector<std::byte> bytes;
  std::vector<StateGap> gaps;
  [[nodiscard]] const std::byte* row(std::size_t gap, std::uint64_t i) const {
    const Result<StateBlob> blob = StateBlob::parse(bytes);
    const StateGap& found = gaps[gap];
    return blob->rows({.offset = found.offset + i * found.row_bytes,
                       .n_rows = 1,
                       .row_bytes = found.row_bytes,
                       .packed_row_bytes = found.packed_row_bytes});
  }
};

PackedRows rows_of(llama_context* context) {
  Result<std::vector<std::byte>> bytes = PackedState().save(context, 0);
  EXPECT_TRUE(bytes);
  std::vector<StateGap> gaps = StateBlob::parse(*bytes)->gaps();
  return {.bytes = std::move(*bytes), .gaps = std::move(gaps)};
}

struct Case {
  const char* kv;
  const char* kv_memory;
};

class KeptDepthTest : public testing::TestWithParam<Case> {
 protected:
  KeptDepthTest()
      : model(load(GetParam().kv, GetParam().kv_memory)), kept(model.context(), path, 1) {}
  ~KeptDepthTest() override { std::filesystem::remove(path); }

  [[nodiscard]] llama_pos last() const {
    return llama_memory_seq_pos_max(llama_get_memory(model.context()), 0);
  }

  Model model;
  // Its own: these tests run at the same time.
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) /
                                     ("depth_" + std::to_string(::getpid()) + ".state");
  KeptDepth kept;
};

TEST_P(KeptDepthTest, RepeatsWhatWasComputed) {
  ASSERT_NO_FATAL_FAILURE(compute(model.context(), kKept));
  const PackedRows computed = rows_of(model.context());
  ASSERT_GT(computed.gaps.size(), 0U);
  ASSERT_TRUE(kept.keep());
  int n_said = 0;
  const Result<void> filled = kept.repeat(kKept, kAll, 1, [&](int n) { n_said = n; });
  ASSERT_TRUE(filled) << filled.error().message;
  EXPECT_EQ(n_said, kAll);
  EXPECT_EQ(last(), kAll - 1);
  const PackedRows repeated = rows_of(model.context());
  ASSERT_EQ(repeated.gaps.size(), computed.gaps.size());
  for (std::size_t gap = 0; gap < computed.gaps.size(); ++gap) {
    ASSERT_EQ(computed.gaps[gap].n_rows, std::uint64_t{kKept});
    ASSERT_EQ(repeated.gaps[gap].n_rows, std::uint64_t{kAll});
    const std::size_t row_bytes = computed.gaps[gap].packed_row_bytes;
    int n_other = 0;
    for (std::uint64_t i = 0; i < kAll; ++i) {
      n_other += std::memcmp(repeated.row(gap, i), computed.row(gap, i % kKept), row_bytes) != 0;
    }
    EXPECT_EQ(n_other, 0) << "gap " << gap;
  }
}

TEST_P(KeptDepthTest, IsRestored) {
  ASSERT_NO_FATAL_FAILURE(compute(model.context(), kKept));
  const PackedRows computed = rows_of(model.context());
  EXPECT_FALSE(kept.restore());  // nothing was kept
  ASSERT_TRUE(kept.keep());
  ASSERT_NO_FATAL_FAILURE(compute(model.context(), 200));
  EXPECT_TRUE(kept.restore());
  EXPECT_EQ(last(), kKept - 1);
  EXPECT_EQ(rows_of(model.context()).bytes, computed.bytes);
}

INSTANTIATE_TEST_SUITE_P(Schemes, KeptDepthTest,
                         testing::Values(Case{"turbo4", ""}, Case{"turbo4,attend=512", ""},
                                         Case{"turbo4,attend=512", "64KiB"},
                                         Case{"turbo8v3,attend=512", "64KiB"}),
                         [](const auto& one) {
                           std::string name = one.param.kv;
                           std::erase_if(name, [](char c) { return c == ',' || c == '='; });
                           return name + (*one.param.kv_memory == '\0' ? "" : "_on_disk");
                         });

}  // namespace
}  // namespace slipstream::bench
