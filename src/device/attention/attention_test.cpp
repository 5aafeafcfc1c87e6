// Attention on tiles against the textbook formula in double precision, on the same decoded numbers.
#include "device/attention/attention.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "device/attention/chunk_kernels.h"
#include "device/graph/binding.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {
namespace {

struct Case {
  const char* name;
  const char* scheme;
  std::int64_t head_dim = 64;
  std::int64_t n_heads = 4;
  std::int64_t n_kv_heads = 2;
  std::int64_t n_queries = 1;
  std::int64_t n_streams = 1;
  float max_bias = 0;
  float softcap = 0;
  bool sinks = false;
  bool causal = true;
  int n_threads = 1;
};

constexpr std::int64_t kCells = 80;
constexpr std::int64_t kUsedCells = 72;  // the view ends inside a tile

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Attention : public testing::TestWithParam<Case> {
 protected:
  Attention() : case_(GetParam()) {
    set_scheme(parse_scheme(case_.scheme).value());
    const ggml_init_params no_memory{.mem_size = 1 << 16, .mem_buffer = nullptr, .no_alloc = true};
    const ggml_init_params memory{.mem_size = 4 << 20, .mem_buffer = nullptr, .no_alloc = false};
    cache_context_.reset(ggml_init(no_memory));
    context_.reset(ggml_init(memory));
    keys_ = make_cache("cache_k_l0");
    values_ = make_cache("cache_v_l0");
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(cache_context_.get(), buffer_type()));
    make_op();
  }

  ggml_tensor* make_cache(const char* name) {
    ggml_tensor* cache =
        ggml_new_tensor_3d(cache_context_.get(), GGML_TYPE_F16, case_.head_dim * case_.n_kv_heads,
                           kCells, case_.n_streams);
    ggml_set_name(cache, name);
    return cache;
  }

  // As libllama reads its cache: [head_dim, heads, cells, streams], heads and cells exchanged.
  ggml_tensor* view(ggml_tensor* cache) {
    ggml_tensor* rows = ggml_view_4d(
        context_.get(), cache, case_.head_dim, case_.n_kv_heads, kUsedCells, case_.n_streams,
        ggml_row_size(cache->type, case_.head_dim), cache->nb[1], cache->nb[2], 0);
    return ggml_permute(context_.get(), rows, 0, 2, 1, 3);
  }

  void make_op() {
    ggml_context* ctx = context_.get();
    query_ = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, case_.head_dim, case_.n_queries, case_.n_heads,
                                case_.n_streams);
    fill(query_);
    mask_ = ggml_new_tensor_4d(ctx, GGML_TYPE_F16, kUsedCells, case_.n_queries, 1, case_.n_streams);
    for (std::int64_t i = 0; i < ggml_nelements(mask_); ++i) {
      const std::int64_t cell = i % kUsedCells;
      const std::int64_t query = i / kUsedCells % case_.n_queries;
      // Causal, with a hole: what libllama writes for removed cells. A bias where ALiBi wants one.
      const bool hidden =
          (case_.causal && cell > kUsedCells - case_.n_queries + query) || cell % 7 == 3;
      const float bias = case_.max_bias > 0 ? -static_cast<float>(kUsedCells - cell) : 0.0F;
      static_cast<ggml_fp16_t*>(mask_->data)[i] =
          ggml_fp32_to_fp16(hidden ? -std::numeric_limits<float>::infinity() : bias);
    }
    op_ = ggml_flash_attn_ext(ctx, query_, view(keys_), view(values_), mask_, kScale,
                              case_.max_bias, case_.softcap);
    if (case_.sinks) {
      sinks_ = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, case_.n_heads);
      fill(sinks_);
      ggml_flash_attn_ext_add_sinks(op_, sinks_);
    }
    ASSERT_TRUE(bind_attention(op_));
  }

  void fill(ggml_tensor* tensor) {
    std::normal_distribution<float> gauss;
    for (std::int64_t i = 0; i < ggml_nelements(tensor); ++i) {
      static_cast<float*>(tensor->data)[i] = gauss(random_);
    }
  }

  void write_cache(ggml_tensor* cache) {
    std::normal_distribution<float> gauss;
    std::vector<ggml_fp16_t> rows(static_cast<std::size_t>(ggml_nelements(cache)));
    for (ggml_fp16_t& value : rows) value = ggml_fp32_to_fp16(gauss(random_));
    ggml_backend_tensor_set(cache, rows.data(), 0, ggml_nbytes(cache));
  }

  // What the cache holds after rounding: the numbers both sides compute with, row after row.
  static std::vector<float> stored(ggml_tensor* tensor) {
    CacheTensor* cache = find_cache(tensor);
    std::vector<float> rows(static_cast<std::size_t>(ggml_nelements(tensor)));
    if (cache->compressed() == nullptr) {
      ggml_fp16_to_fp32_row(reinterpret_cast<const ggml_fp16_t*>(cache->plain()), rows.data(),
                            ggml_nelements(tensor));
      return rows;
    }
    const auto n = static_cast<std::size_t>(cache->n_channels());
    for (std::int64_t row = 0; row < cache->n_rows(); ++row) {
      cache->read_row(row, std::span(rows).subspan(static_cast<std::size_t>(row) * n, n));
    }
    return rows;
  }

  void run() {
    SharedPlan plan;
    plan.reset(op_);
    plan.make(case_.n_threads);
    const AttentionTask task{.op = op_,
                             .keys = find_cache(keys_),
                             .values = find_cache(values_),
                             .first_stream = 0,
                             .plan = &plan};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < case_.n_threads; ++i) {
        threads.emplace_back([&, i] { run_attention(task, i); });
      }
    }
  }

  double slope(std::int64_t head) const {
    if (case_.max_bias == 0) return 1;
    return std::pow(2.0, -static_cast<double>(case_.max_bias) / static_cast<double>(case_.n_heads) *
                             static_cast<double>(head + 1));
  }

  std::vector<double> expected(std::int64_t stream, std::int64_t query, std::int64_t head,
                               const std::vector<float>& keys, const std::vector<float>& values) {
    const std::int64_t kv_head = head / (case_.n_heads / case_.n_kv_heads);
    const auto at = [&](const std::vector<float>& rows, std::int64_t cell, std::int64_t channel) {
      const std::int64_t row = stream * kCells + cell;
      return static_cast<double>(rows[static_cast<std::size_t>(
          (row * case_.n_kv_heads + kv_head) * case_.head_dim + channel)]);
    };
    const float* q = static_cast<const float*>(query_->data) +
                     ((stream * case_.n_heads + head) * case_.n_queries + query) * case_.head_dim;
    const auto* mask = static_cast<const ggml_fp16_t*>(mask_->data) +
                       (stream * case_.n_queries + query) * kUsedCells;
    std::vector<double> output(static_cast<std::size_t>(case_.head_dim));
    double total = 0;
    if (sinks_ != nullptr)
      total = std::exp(static_cast<double>(static_cast<float*>(sinks_->data)[head]));
    for (std::int64_t cell = 0; cell < kUsedCells; ++cell) {
      const auto bias = static_cast<double>(ggml_fp16_to_fp32(mask[cell]));
      if (std::isinf(bias)) continue;
      double score = 0;
      for (std::int64_t c = 0; c < case_.head_dim; ++c) {
        score += static_cast<double>(q[c]) * at(keys, cell, c);
      }
      score *= static_cast<double>(kScale);
      const auto cap = static_cast<double>(case_.softcap);
      if (case_.softcap != 0) score = cap * std::tanh(score / cap);
      const double weight = std::exp(score + slope(head) * bias);
      total += weight;
      for (std::int64_t c = 0; c < case_.head_dim; ++c) {
        output[static_cast<std::size_t>(c)] += weight * at(values, cell, c);
      }
    }
    for (double& value : output) value /= total;
    return output;
  }

  // What is rounded beside the cache: the query, to a step of its peak (about 3), which moves a
  // score by `score_deviation`; and weights, to a step of the chunk's largest.
  double tolerance() const {
    const Bits bits = parse_scheme(case_.scheme).value().bits_of_layer(0);
    const double query_step = 3.0 / static_cast<double>(bits.keys == 8 ? kQueryMax2 : kQueryMax1);
    const double score_deviation = static_cast<double>(kScale) * query_step / std::sqrt(12.0) *
                                   std::sqrt(static_cast<double>(case_.head_dim));
    return 2e-5 + (bits.keys == 0 ? 0 : 4 * score_deviation) +
           2.5 / static_cast<double>(bits.values == 8 ? kWeightMax2 : kWeightMax1);
  }

  static constexpr float kScale = 0.125F;
  Case case_;
  std::mt19937 random_{23};
  ggml_context_ptr cache_context_;
  ggml_context_ptr context_;
  ggml_backend_buffer_ptr buffer_;
  ggml_tensor* keys_ = nullptr;
  ggml_tensor* values_ = nullptr;
  ggml_tensor* query_ = nullptr;
  ggml_tensor* mask_ = nullptr;
  ggml_tensor* sinks_ = nullptr;
  ggml_tensor* op_ = nullptr;
};

TEST_P(Attention, IsTheTextbooks) {
  write_cache(keys_);
  write_cache(values_);
  run();
  const std::vector<float> keys = stored(keys_);
  const std::vector<float> values = stored(values_);
  const auto* result = static_cast<const float*>(op_->data);
  for (std::int64_t stream = 0; stream < case_.n_streams; ++stream) {
    for (std::int64_t query = 0; query < case_.n_queries; ++query) {
      for (std::int64_t head = 0; head < case_.n_heads; ++head) {
        const std::vector<double> wanted = expected(stream, query, head, keys, values);
        for (std::size_t c = 0; c < wanted.size(); ++c) {
          ASSERT_NEAR(*result++, wanted[c], tolerance())
              << "stream " << stream << " query " << query << " head " << head << " channel " << c;
        }
      }
    }
  }
}

// As in stock: a model that computes nonsense must be seen to.
TEST_P(Attention, WhatIsNoNumberStaysNone) {
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
        Case{.name = "turbo4", .scheme = "turbo4"}, Case{.name = "turbo3", .scheme = "turbo3"},
        Case{.name = "turbo2", .scheme = "turbo2"}, Case{.name = "turbo8", .scheme = "turbo8"},
        Case{.name = "plain_keys", .scheme = "turbo0v4"},
        Case{.name = "plain_values", .scheme = "turbo4v0"},
        Case{.name = "finer_values", .scheme = "turbo3v8"},
        Case{.name = "head_80", .scheme = "turbo8v4", .head_dim = 80},
        Case{.name = "head_96", .scheme = "turbo4v3", .head_dim = 96},
        Case{.name = "head_128", .scheme = "turbo8v3", .head_dim = 128},
        Case{.name = "head_256", .scheme = "turbo4v2", .head_dim = 256},
        Case{.name = "head_80_exact", .scheme = "turbo8", .head_dim = 80, .n_queries = 9},
        Case{.name = "head_96_exact", .scheme = "turbo8", .head_dim = 96, .n_queries = 9},
        Case{.name = "head_256_exact", .scheme = "turbo8", .head_dim = 256, .n_queries = 9},
        Case{.name = "one_kv_head", .scheme = "turbo8", .n_heads = 8, .n_kv_heads = 1},
        Case{.name = "one_kv_head_on_threads",
             .scheme = "turbo8",
             .n_heads = 8,
             .n_kv_heads = 1,
             .n_threads = 2},
        Case{.name = "prefill", .scheme = "turbo8", .n_queries = 37},
        Case{.name = "prefill_4", .scheme = "turbo4", .n_queries = 37},
        Case{.name = "streams", .scheme = "turbo8", .n_queries = 3, .n_streams = 3},
        Case{.name = "alibi", .scheme = "turbo8", .max_bias = 8},
        Case{.name = "softcap", .scheme = "turbo8", .softcap = 5},
        Case{.name = "sinks", .scheme = "turbo8", .n_queries = 5, .sinks = true},
        Case{.name = "threads",
             .scheme = "turbo8",
             .n_queries = 40,
             .n_streams = 2,
             .n_threads = 3}),
    [](const testing::TestParamInfo<Case>& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace slipstream::turbo
