// Attention on tiles against the textbook formula in double precision, on the same decoded numbers.
#include "device/attention/attention.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "device/attention/chunk_kernels.h"
#include "device/codec/test_bases.h"
#include "device/graph/binding.h"
#include "device/kv_buffer/kv_buffer.h"
#include "device/kv_buffer/precise_chunks.h"

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
  std::int64_t n_cells = 80;
  std::int64_t first_stream = 0;
  // The last cells are the queries' own, written after keep_precise(); those before as a prompt of
  // their own, or, if not kept, as a state is restored. Each stream is 70 cells shorter.
  bool own_cells = false;
  bool keeps_prompt = true;
  bool is_fitted = false;  // keys have a basis of their own

  [[nodiscard]] std::int64_t n_used() const { return n_cells - 8; }  // ends inside a tile
  [[nodiscard]] std::int64_t own_cell(std::int64_t stream, std::int64_t query) const {
    return n_used() - n_queries + query - (own_cells ? 70 * stream : 0);
  }
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Attention : public testing::TestWithParam<Case> {
 protected:
  Attention() : case_(GetParam()), type_(parse_scheme(case_.scheme).value()) {
    const ggml_init_params no_memory{.mem_size = 1 << 16, .mem_buffer = nullptr, .no_alloc = true};
    const ggml_init_params memory{.mem_size = 4 << 20, .mem_buffer = nullptr, .no_alloc = false};
    cache_context_.reset(ggml_init(no_memory));
    context_.reset(ggml_init(memory));
    keys_ = make_cache("cache_k_l0");
    values_ = make_cache("cache_v_l0");
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(cache_context_.get(), type_.handle()));
    make_op();
  }

  ggml_tensor* make_cache(const char* name) {
    ggml_tensor* cache =
        ggml_new_tensor_3d(cache_context_.get(), GGML_TYPE_F16, case_.head_dim * case_.n_kv_heads,
                           case_.n_cells, case_.first_stream + case_.n_streams);
    ggml_set_name(cache, name);
    return cache;
  }

  // As libllama reads its cache: [head_dim, heads, cells, streams], heads and cells exchanged.
  ggml_tensor* view(ggml_tensor* cache) {
    ggml_tensor* rows =
        ggml_view_4d(context_.get(), cache, case_.head_dim, case_.n_kv_heads, case_.n_used(),
                     case_.n_streams, ggml_row_size(cache->type, case_.head_dim), cache->nb[1],
                     cache->nb[2], static_cast<std::size_t>(case_.first_stream) * cache->nb[2]);
    return ggml_permute(context_.get(), rows, 0, 2, 1, 3);
  }

  void make_op() {
    ggml_context* ctx = context_.get();
    query_ = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, case_.head_dim, case_.n_queries, case_.n_heads,
                                case_.n_streams);
    fill(query_);
    const std::int64_t n_used = case_.n_used();
    mask_ = ggml_new_tensor_4d(ctx, GGML_TYPE_F16, n_used, case_.n_queries, 1, case_.n_streams);
    for (std::int64_t i = 0; i < ggml_nelements(mask_); ++i) {
      const std::int64_t cell = i % n_used;
      const std::int64_t query = i / n_used % case_.n_queries;
      const std::int64_t stream = i / n_used / case_.n_queries;
      // Causal, with a hole: what libllama writes for removed cells. A bias where ALiBi wants one.
      const bool hidden = (case_.causal && cell > case_.own_cell(stream, query)) || cell % 7 == 3;
      const float bias = case_.max_bias > 0 ? -static_cast<float>(n_used - cell) : 0.0F;
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
    if (case_.own_cells) {
      own_cells_ = ggml_new_tensor_1d(ctx, GGML_TYPE_I64, case_.n_queries * case_.n_streams);
      const std::vector<std::int64_t> rows = rows_of(true);
      std::ranges::copy(rows, static_cast<std::int64_t*>(own_cells_->data));
    }
    if (case_.is_fitted) {
      const auto head_dim = static_cast<int>(case_.head_dim);
      // As the rows that are written: alike in all directions.
      ASSERT_TRUE(find_cache(keys_)->bind_compressed(
          scheme_bits().keys, head_dim,
          test_bases(static_cast<std::size_t>(case_.n_kv_heads), head_dim, 0)));
    }
    ASSERT_TRUE(bind_attention(op_));
  }

  [[nodiscard]] Bits scheme_bits() const {
    return parse_scheme(case_.scheme).value().bits_of_layer(0);
  }

  // The queries' own rows, stream after stream, or those before them.
  [[nodiscard]] std::vector<std::int64_t> rows_of(bool own) const {
    std::vector<std::int64_t> rows;
    for (std::int64_t stream = 0; stream < case_.n_streams; ++stream) {
      const std::int64_t end = case_.own_cell(stream, own ? case_.n_queries : 0);
      for (std::int64_t cell = own ? case_.own_cell(stream, 0) : 0; cell < end; ++cell) {
        rows.push_back(row_of(stream, cell));
      }
    }
    return rows;
  }
  [[nodiscard]] std::int64_t row_of(std::int64_t stream, std::int64_t cell) const {
    return (case_.first_stream + stream) * case_.n_cells + cell;
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
    if (!case_.own_cells) return;
    if (case_.keeps_prompt) write_kept(cache, rows_of(false));
    write_kept(cache, rows_of(true));
  }

  // As a graph does it: the whole batch is announced, then written over what was there.
  void write_kept(ggml_tensor* cache, const std::vector<std::int64_t>& row_idx) {
    CompressedCache* codes = find_cache(cache)->compressed();
    if (codes != nullptr) {
      const CacheShape shape =
          PreciseChunks::scratch_shape(codes->shape(), static_cast<std::int64_t>(row_idx.size()));
      codes->keep_precise(
          row_idx, std::make_shared<CompressedCache>(CompressedCache::create(shape).value()));
    }
    std::normal_distribution<float> gauss;
    std::vector<ggml_fp16_t> row(static_cast<std::size_t>(cache->ne[0]));
    std::vector<float> numbers(row.size());
    for (const std::int64_t idx : row_idx) {
      for (ggml_fp16_t& value : row) value = ggml_fp32_to_fp16(gauss(random_));
      ggml_fp16_to_fp32_row(row.data(), numbers.data(), cache->ne[0]);
      if (codes != nullptr) {
        find_cache(cache)->write_row(idx, numbers);
      } else {
        ggml_backend_tensor_set(cache, row.data(), static_cast<std::size_t>(idx) * cache->nb[1],
                                cache->nb[1]);
      }
    }
  }

  // What the cache holds after rounding: the numbers both sides compute with, row after row.
  struct Stored {
    std::vector<float> coded;
    std::vector<float> precise;  // empty where there is no other copy
  };
  [[nodiscard]] Stored stored(ggml_tensor* tensor) const {
    const CompressedCache* codes = find_cache(tensor)->compressed();
    Stored rows{.coded = coded(tensor), .precise = {}};
    if (codes == nullptr || !codes->has_precise()) return rows;
    rows.precise.resize(rows.coded.size(), std::numeric_limits<float>::quiet_NaN());
    const auto dim = static_cast<std::size_t>(case_.head_dim);
    std::span<float> rest = rows.precise;
    for (std::int64_t row = 0; row < find_cache(tensor)->n_rows(); ++row) {
      const std::int64_t cell = row % case_.n_cells;
      const auto [tiles, idx] = codes->precise(row / case_.n_cells, cell / kChunkTokens);
      for (std::int64_t head = 0; head < case_.n_kv_heads; ++head, rest = rest.subspan(dim)) {
        if (tiles == nullptr) continue;
        const std::span vector = rest.first(dim);
        tiles->read(idx * kChunkTokens + cell % kChunkTokens, head, vector);
        std::ranges::transform(vector, codes->centre(head), vector.begin(), std::plus<>());
      }
    }
    return rows;
  }

  // What the precise copy of a query's own chunk, the one before and the first is read for, if both
  // sides have it.
  [[nodiscard]] bool reads_precisely(std::int64_t stream, std::int64_t query,
                                     std::int64_t cell) const {
    const std::int64_t own = case_.own_cell(stream, query) / kChunkTokens;
    const std::int64_t chunk = cell / kChunkTokens;
    if (!case_.own_cells || (chunk != own && chunk + 1 != own && chunk != 0)) return false;
    return std::ranges::all_of(std::array{keys_, values_}, [&](ggml_tensor* side) {
      const CompressedCache* codes = find_cache(side)->compressed();
      return codes == nullptr || !codes->has_precise() ||
             codes->precise(case_.first_stream + stream, chunk).tiles != nullptr;
    });
  }

  static std::vector<float> coded(ggml_tensor* tensor) {
    CacheTensor* cache = find_cache(tensor);
    std::vector<float> rows(static_cast<std::size_t>(ggml_nelements(tensor)));
    if (cache->compressed() == nullptr) {
      ggml_fp16_to_fp32_row(reinterpret_cast<const ggml_fp16_t*>(cache->plain()), rows.data(),
                            ggml_nelements(tensor));
      return rows;
    }
    const auto dim = static_cast<std::size_t>(cache->compressed()->shape().head_dim);
    std::span<float> rest = rows;
    for (std::int64_t row = 0; row < cache->n_rows(); ++row) {
      for (std::int64_t head = 0; head < cache->compressed()->shape().n_heads; ++head) {
        cache->compressed()->read(row, head, rest.first(dim));
        rest = rest.subspan(dim);
      }
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
                             .first_stream = case_.first_stream,
                             .plan = &plan,
                             .own_cells = own_cells_};
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
                               const Stored& keys, const Stored& values, bool codes_only) {
    const std::int64_t kv_head = head / (case_.n_heads / case_.n_kv_heads);
    const auto vector_at = [&](const Stored& rows, std::int64_t cell) {
      const std::int64_t row = row_of(stream, cell);
      const bool precisely =
          !codes_only && !rows.precise.empty() && reads_precisely(stream, query, cell);
      return (precisely ? rows.precise : rows.coded).data() +
             (row * case_.n_kv_heads + kv_head) * case_.head_dim;
    };
    const float* q = static_cast<const float*>(query_->data) +
                     ((stream * case_.n_heads + head) * case_.n_queries + query) * case_.head_dim;
    const auto* mask = static_cast<const ggml_fp16_t*>(mask_->data) +
                       (stream * case_.n_queries + query) * case_.n_used();
    std::vector<double> output(static_cast<std::size_t>(case_.head_dim));
    double total = 0;
    if (sinks_ != nullptr)
      total = std::exp(static_cast<double>(static_cast<float*>(sinks_->data)[head]));
    for (std::int64_t cell = 0; cell < case_.n_used(); ++cell) {
      const auto bias = static_cast<double>(ggml_fp16_to_fp32(mask[cell]));
      if (std::isinf(bias)) continue;
      const float* key = vector_at(keys, cell);
      const float* value = vector_at(values, cell);
      double score = 0;
      for (std::int64_t c = 0; c < case_.head_dim; ++c) {
        score += static_cast<double>(q[c]) * static_cast<double>(key[c]);
      }
      score *= static_cast<double>(kScale);
      const auto cap = static_cast<double>(case_.softcap);
      if (case_.softcap != 0) score = cap * std::tanh(score / cap);
      const double weight = std::exp(score + slope(head) * bias);
      total += weight;
      for (std::int64_t c = 0; c < case_.head_dim; ++c) {
        output[static_cast<std::size_t>(c)] += weight * static_cast<double>(value[c]);
      }
    }
    for (double& number : output) number /= total;
    return output;
  }

  // What is rounded beside the cache: the query, to a step of its peak (about 3), which moves a
  // score by `score_deviation`; and weights, to a step of the chunk's largest.
  double tolerance() const {
    const Bits bits = scheme_bits();
    const double query_step = 3.0 / static_cast<double>(bits.keys == 8 ? kQueryMax2 : kQueryMax1);
    const double score_deviation = static_cast<double>(kScale) * query_step / std::sqrt(12.0) *
                                   std::sqrt(static_cast<double>(case_.head_dim));
    return 2e-5 + (bits.keys == 0 ? 0 : 4 * score_deviation) +
           2.5 / static_cast<double>(bits.values == 8 ? kWeightMax2 : kWeightMax1);
  }

  static constexpr float kScale = 0.125F;
  Case case_;
  KvBufferType type_;
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
  ggml_tensor* own_cells_ = nullptr;
};

TEST_P(Attention, IsTheTextbooks) {
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
      // A precise chunk that was read as codes would show.
      if (case_.own_cells) {
        ASSERT_LT(error, error_of_codes / 8) << "stream " << stream << " query " << query;
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

INSTANTIATE_TEST_SUITE_P(
    Fitted, Attention,
    testing::Values(Case{.name = "turbo4", .scheme = "turbo4", .is_fitted = true},
                    Case{.name = "turbo3", .scheme = "turbo3", .head_dim = 128, .is_fitted = true},
                    Case{.name = "head_48", .scheme = "turbo4", .head_dim = 48, .is_fitted = true},
                    Case{.name = "head_80",
                         .scheme = "turbo3",
                         .head_dim = 80,
                         .n_queries = 9,
                         .is_fitted = true},
                    Case{.name = "head_256",
                         .scheme = "turbo4",
                         .head_dim = 256,
                         .n_queries = 9,
                         .is_fitted = true},
                    Case{.name = "one_kv_head",
                         .scheme = "turbo4v0",
                         .n_heads = 8,
                         .n_kv_heads = 1,
                         .n_threads = 2,
                         .is_fitted = true},
                    Case{.name = "sinks_and_softcap",
                         .scheme = "turbo4",
                         .n_queries = 5,
                         .softcap = 5,
                         .sinks = true,
                         .is_fitted = true},
                    Case{.name = "precise",
                         .scheme = "turbo4",
                         .n_cells = 330,
                         .own_cells = true,
                         .is_fitted = true},
                    Case{.name = "precise_prefill",
                         .scheme = "turbo3",
                         .head_dim = 128,
                         .n_queries = 70,
                         .n_streams = 2,
                         .n_threads = 3,
                         .n_cells = 330,
                         .own_cells = true,
                         .is_fitted = true},
                    Case{.name = "restored",
                         .scheme = "turbo4",
                         .n_queries = 70,
                         .n_cells = 330,
                         .own_cells = true,
                         .keeps_prompt = false,
                         .is_fitted = true}),
    [](const testing::TestParamInfo<Case>& test) { return std::string(test.param.name); });

// Chunks end at cells 256 and 320; the last query's own cell is 321, of a second stream 251.
INSTANTIATE_TEST_SUITE_P(
    Precise, Attention,
    testing::Values(Case{.name = "turbo4", .scheme = "turbo4", .n_cells = 330, .own_cells = true},
                    Case{.name = "turbo3",
                         .scheme = "turbo3",
                         .head_dim = 128,
                         .n_queries = 5,
                         .n_cells = 330,
                         .own_cells = true},
                    Case{.name = "exact_keys",
                         .scheme = "turbo8v4",
                         .head_dim = 80,
                         .n_queries = 70,
                         .n_cells = 330,
                         .own_cells = true},
                    Case{.name = "plain_values",
                         .scheme = "turbo4v0",
                         .n_queries = 5,
                         .n_cells = 330,
                         .own_cells = true},
                    Case{.name = "plain_keys",
                         .scheme = "turbo0v4",
                         .n_queries = 70,
                         .n_threads = 3,
                         .n_cells = 330,
                         .own_cells = true},
                    Case{.name = "one_on_threads",
                         .scheme = "turbo3",
                         .head_dim = 80,
                         .n_threads = 3,
                         .n_cells = 330,
                         .own_cells = true},
                    Case{.name = "streams",
                         .scheme = "turbo4",
                         .head_dim = 80,
                         .n_queries = 5,
                         .n_streams = 2,
                         .n_cells = 330,
                         .own_cells = true},
                    Case{.name = "one_in_streams",
                         .scheme = "turbo8v4",
                         .head_dim = 128,
                         .n_streams = 2,
                         .n_threads = 3,
                         .n_cells = 330,
                         .own_cells = true},
                    Case{.name = "prefill",
                         .scheme = "turbo4",
                         .head_dim = 128,
                         .n_queries = 70,
                         .n_cells = 330,
                         .own_cells = true},
                    Case{.name = "prefill_in_streams",
                         .scheme = "turbo3",
                         .n_queries = 70,
                         .n_streams = 2,
                         .n_threads = 3,
                         .n_cells = 330,
                         .own_cells = true},
                    Case{.name = "through_the_scratch",
                         .scheme = "turbo4",
                         .n_queries = 200,
                         .n_streams = 2,
                         .n_threads = 3,
                         .n_cells = 330,
                         .own_cells = true},
                    Case{.name = "all_at_once",
                         .scheme = "turbo4",
                         .n_queries = 322,
                         .n_cells = 330,
                         .own_cells = true},
                    Case{.name = "later_stream",
                         .scheme = "turbo4",
                         .n_queries = 5,
                         .n_streams = 2,
                         .n_cells = 330,
                         .first_stream = 1,
                         .own_cells = true},
                    Case{.name = "restored",
                         .scheme = "turbo4",
                         .n_queries = 70,
                         .n_cells = 330,
                         .own_cells = true,
                         .keeps_prompt = false},
                    Case{.name = "sinks_and_softcap",
                         .scheme = "turbo4",
                         .n_queries = 5,
                         .softcap = 5,
                         .sinks = true,
                         .n_cells = 330,
                         .own_cells = true},
                    Case{.name = "alibi",
                         .scheme = "turbo4",
                         .n_queries = 5,
                         .max_bias = 8,
                         .n_cells = 330,
                         .own_cells = true}),
    [](const testing::TestParamInfo<Case>& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace slipstream::turbo
