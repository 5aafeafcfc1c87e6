// Compares attention on tiles with the textbook formula, computed in double precision on the same
// decoded numbers.
#include "device/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "device/attention/attention_fixture.h"

namespace slipstream::turbo {
namespace {

TEST_P(Attention, MatchesTheTextbook) {
  write_cache(keys_);
  write_cache(values_);
  run();
  const Stored keys = stored(keys_);
  const Stored values = stored(values_);
  const auto* result = static_cast<const float*>(op_->data);
  for (std::int64_t stream = 0; stream < case_.n_streams; ++stream) {
    for (std::int64_t query = 0; query < case_.n_queries; ++query) {
      double error = 0;
      double error_of_codes = 0;
      for (std::int64_t head = 0; head < case_.n_heads; ++head) {
        const std::vector<double> wanted = expected(stream, query, head, keys, values, false);
        const std::vector<double> coarse =
            case_.own_cells ? expected(stream, query, head, keys, values, true) : wanted;
        for (std::size_t c = 0; c < wanted.size(); ++c) {
          const auto found = static_cast<double>(*result++);
          ASSERT_NEAR(found, wanted[c], tolerance())
              << "stream " << stream << " query " << query << " head " << head << " channel " << c;
          error += (found - wanted[c]) * (found - wanted[c]);
          error_of_codes += (coarse[c] - wanted[c]) * (coarse[c] - wanted[c]);
        }
      }
      // Fails if a chunk was read as codes that should have been read precisely. A planted token,
      // which is far away, leaves no weight for these chunks.
      if (case_.own_cells && !case_.planted) {
        ASSERT_LT(error, error_of_codes / 8) << "stream " << stream << " query " << query;
      }
    }
  }
}

// As in stock ggml: if a model computes non-finite numbers, its output must show that.
TEST_P(Attention, NonFiniteQueriesGiveNan) {
  write_cache(keys_);
  write_cache(values_);
  static_cast<float*>(query_->data)[3] = std::numeric_limits<float>::quiet_NaN();
  run();
  const auto* result = static_cast<const float*>(op_->data);
  EXPECT_TRUE(std::isnan(result[0]));
  EXPECT_TRUE(std::isfinite(result[case_.head_dim]));  // the next head
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Attention,
    testing::Values(
        AttentionCase{.name = "turbo4", .scheme = "turbo4"},
        AttentionCase{.name = "turbo3", .scheme = "turbo3"},
        AttentionCase{.name = "turbo2", .scheme = "turbo2"},
        AttentionCase{.name = "turbo8", .scheme = "turbo8"},
        AttentionCase{.name = "plain_keys", .scheme = "turbo0v4"},
        AttentionCase{.name = "plain_values", .scheme = "turbo4v0"},
        AttentionCase{.name = "finer_values", .scheme = "turbo3v8"},
        AttentionCase{.name = "head_80", .scheme = "turbo8v4", .head_dim = 80},
        AttentionCase{.name = "head_96", .scheme = "turbo4v3", .head_dim = 96},
        AttentionCase{.name = "head_128", .scheme = "turbo8v3", .head_dim = 128},
        AttentionCase{.name = "head_256", .scheme = "turbo4v2", .head_dim = 256},
        AttentionCase{.name = "head_80_exact", .scheme = "turbo8", .head_dim = 80, .n_queries = 9},
        AttentionCase{.name = "head_96_exact", .scheme = "turbo8", .head_dim = 96, .n_queries = 9},
        AttentionCase{
            .name = "head_256_exact", .scheme = "turbo8", .head_dim = 256, .n_queries = 9},
        AttentionCase{.name = "one_kv_head", .scheme = "turbo8", .n_heads = 8, .n_kv_heads = 1},
        AttentionCase{.name = "one_kv_head_on_threads",
                      .scheme = "turbo8",
                      .n_heads = 8,
                      .n_kv_heads = 1,
                      .n_threads = 2},
        AttentionCase{.name = "prefill", .scheme = "turbo8", .n_queries = 37},
        AttentionCase{.name = "prefill_4", .scheme = "turbo4", .n_queries = 37},
        AttentionCase{.name = "streams", .scheme = "turbo8", .n_queries = 3, .n_streams = 3},
        AttentionCase{.name = "alibi", .scheme = "turbo8", .max_bias = 8},
        AttentionCase{.name = "softcap", .scheme = "turbo8", .softcap = 5},
        AttentionCase{.name = "sinks", .scheme = "turbo8", .n_queries = 5, .sinks = true},
        AttentionCase{.name = "threads",
                      .scheme = "turbo8",
                      .n_queries = 40,
                      .n_streams = 2,
                      .n_threads = 3}),
    attention_case_name);

}  // namespace
}  // namespace slipstream::turbo
