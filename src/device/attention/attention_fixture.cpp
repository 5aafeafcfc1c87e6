#include "device/attention/attention_fixture.h"

#include <ggml-backend.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <thread>

#include "device/attention/attention.h"
#include "device/attention/chunk_kernels.h"
#include "device/codec/test_bases.h"
#include "device/graph/binding.h"
#include "device/kv_buffer/kv_buffer.h"
#include "device/kv_buffer/precise_chunks.h"

namespace slipstream::turbo {
namespace {

constexpr float kScoreScale = 0.125F;

// The rows of a cache, decoded from its codes or converted from its plain rows.
std::vector<float> coded_rows(ggml_tensor* tensor) {
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

}  // namespace

Attention::Attention(const AttentionCase& its_case)
    : case_(its_case), type_(parse_scheme(case_.scheme).value()) {
  const ggml_init_params no_memory{.mem_size = 1 << 16, .mem_buffer = nullptr, .no_alloc = true};
  const ggml_init_params memory{.mem_size = 4 << 20, .mem_buffer = nullptr, .no_alloc = false};
  cache_context_.reset(ggml_init(no_memory));
  context_.reset(ggml_init(memory));
  keys_ = make_cache("cache_k_l0");
  values_ = make_cache("cache_v_l0");
  buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(cache_context_.get(), type_.handle()));
  make_op();
}

ggml_tensor* Attention::make_cache(const char* name) {
  ggml_tensor* cache =
      ggml_new_tensor_3d(cache_context_.get(), GGML_TYPE_F16, case_.head_dim * case_.n_kv_heads,
                         case_.n_cells, case_.first_stream + case_.n_streams);
  ggml_set_name(cache, name);
  return cache;
}

// The view that libllama reads its cache with: [head_dim, heads, cells, streams] with heads and
// cells exchanged.
ggml_tensor* Attention::view(ggml_tensor* cache) {
  ggml_tensor* rows =
      ggml_view_4d(context_.get(), cache, case_.head_dim, case_.n_kv_heads, case_.n_used(),
                   case_.n_streams, ggml_row_size(cache->type, case_.head_dim), cache->nb[1],
                   cache->nb[2], static_cast<std::size_t>(case_.first_stream) * cache->nb[2]);
  return ggml_permute(context_.get(), rows, 0, 2, 1, 3);
}

// The mask is causal and hides some other cells, as libllama hides removed cells. It has a bias if
// the case uses ALiBi.
void Attention::make_mask() {
  const std::int64_t n_used = case_.n_used();
  mask_ = ggml_new_tensor_4d(context_.get(), GGML_TYPE_F16, n_used, case_.n_queries, 1,
                             case_.n_streams);
  for (std::int64_t i = 0; i < ggml_nelements(mask_); ++i) {
    const std::int64_t cell = i % n_used;
    const std::int64_t query = i / n_used % case_.n_queries;
    const std::int64_t stream = i / n_used / case_.n_queries;
    const bool hidden = (case_.causal && cell > case_.own_cell(stream, query)) || cell % 7 == 3;
    const float bias = case_.max_bias > 0 ? -static_cast<float>(n_used - cell) : 0.0F;
    static_cast<ggml_fp16_t*>(mask_->data)[i] =
        ggml_fp32_to_fp16(hidden ? -std::numeric_limits<float>::infinity() : bias);
  }
}

void Attention::make_op() {
  ggml_context* ctx = context_.get();
  query_ = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, case_.head_dim, case_.n_queries, case_.n_heads,
                              case_.n_streams);
  fill(query_);
  make_mask();
  op_ = ggml_flash_attn_ext(ctx, query_, view(keys_), view(values_), mask_, kScoreScale,
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
    // The written rows have the same variance in all directions, and so has this basis.
    ASSERT_TRUE(find_cache(keys_)->bind_compressed(
        scheme_bits().keys, head_dim,
        test_bases(static_cast<std::size_t>(case_.n_kv_heads), head_dim, 0)));
  }
  ASSERT_TRUE(bind_attention(op_));
}

Bits Attention::scheme_bits() const { return parse_scheme(case_.scheme).value().bits_of_layer(0); }

std::vector<std::int64_t> Attention::rows_of(bool own) const {
  std::vector<std::int64_t> rows;
  for (std::int64_t stream = 0; stream < case_.n_streams; ++stream) {
    const std::int64_t end = case_.own_cell(stream, own ? case_.n_queries : 0);
    for (std::int64_t cell = own ? case_.own_cell(stream, 0) : 0; cell < end; ++cell) {
      rows.push_back(row_of(stream, cell));
    }
  }
  return rows;
}

std::int64_t Attention::row_of(std::int64_t stream, std::int64_t cell) const {
  return (case_.first_stream + stream) * case_.n_cells + cell;
}

void Attention::fill(ggml_tensor* tensor) {
  std::normal_distribution<float> gauss;
  for (std::int64_t i = 0; i < ggml_nelements(tensor); ++i) {
    static_cast<float*>(tensor->data)[i] = gauss(random_);
  }
}

void Attention::write_cache(ggml_tensor* cache) {
  std::normal_distribution<float> gauss;
  std::vector<ggml_fp16_t> rows(static_cast<std::size_t>(ggml_nelements(cache)));
  for (ggml_fp16_t& value : rows) value = ggml_fp32_to_fp16(gauss(random_));
  ggml_backend_tensor_set(cache, rows.data(), 0, ggml_nbytes(cache));
  if (case_.planted && cache == keys_) plant();
  if (!case_.own_cells) return;
  if (case_.keeps_prompt) write_kept(cache, rows_of(false));
  write_kept(cache, rows_of(true));
}

// Makes one key four times as long as a query that it points along.
void Attention::plant() {
  CacheTensor* cache = find_cache(keys_);
  std::vector<float> row(static_cast<std::size_t>(keys_->ne[0]));
  const auto* q = static_cast<const float*>(query_->data);
  std::int64_t cell = 60;
  for (std::int64_t stream = 0; stream < case_.n_streams; ++stream) {
    for (std::int64_t head = 0; head < case_.n_heads; ++head) {
      const std::int64_t kv_head = head / (case_.n_heads / case_.n_kv_heads);
      for (std::int64_t query = 0; query < case_.n_queries; ++query, q += case_.head_dim) {
        cell = (cell + 203) / 7 * 7 % (case_.own_cell(stream, 0) / 7 * 7);  // the mask hides 7n + 3
        cache->read_row(row_of(stream, cell), row);
        std::transform(q, q + case_.head_dim, row.begin() + kv_head * case_.head_dim,
                       [](float x) { return 4 * x; });
        cache->write_row(row_of(stream, cell), row);
      }
    }
  }
}

// Writes as a graph does: keep_precise() gets the whole batch, whose rows then overwrite old ones.
void Attention::write_kept(ggml_tensor* cache, const std::vector<std::int64_t>& row_idx) {
  CompressedCache* codes = find_cache(cache)->compressed();
  if (codes != nullptr) {
    const CacheShape shape =
        PreciseChunks::scratch_shape(codes->shape(), static_cast<std::int64_t>(row_idx.size()));
    EXPECT_TRUE(codes->keep_precise(
        row_idx, std::make_shared<CompressedCache>(CompressedCache::create(shape).value())));
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

void Attention::run() {
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
      threads.emplace_back([&, i] { EXPECT_TRUE(run_attention(task, i)); });
    }
  }
}

// --- the textbook

Attention::Stored Attention::stored(ggml_tensor* tensor) const {
  const CompressedCache* codes = find_cache(tensor)->compressed();
  Stored rows{.coded = coded_rows(tensor), .precise = {}};
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

bool Attention::reads_precisely(std::int64_t stream, std::int64_t query, std::int64_t cell) const {
  const std::int64_t own = case_.own_cell(stream, query) / kChunkTokens;
  const std::int64_t chunk = cell / kChunkTokens;
  if (!case_.own_cells || (chunk != own && chunk + 1 != own && chunk != 0)) return false;
  return std::ranges::all_of(std::array{keys_, values_}, [&](ggml_tensor* side) {
    const CompressedCache* codes = find_cache(side)->compressed();
    return codes == nullptr || !codes->has_precise() ||
           codes->precise(case_.first_stream + stream, chunk).tiles != nullptr;
  });
}

double Attention::slope(std::int64_t head) const {
  if (case_.max_bias == 0) return 1;
  return std::pow(2.0, -static_cast<double>(case_.max_bias) / static_cast<double>(case_.n_heads) *
                           static_cast<double>(head + 1));
}

std::vector<double> Attention::expected(std::int64_t stream, std::int64_t query, std::int64_t head,
                                        const Stored& keys, const Stored& values,
                                        bool codes_only) const {
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
    score *= static_cast<double>(kScoreScale);
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

double Attention::tolerance() const {
  const Bits bits = scheme_bits();
  const double query_step = 3.0 / static_cast<double>(bits.keys == 8 ? kQueryMax2 : kQueryMax1);
  const double score_deviation = static_cast<double>(kScoreScale) * query_step / std::sqrt(12.0) *
                                 std::sqrt(static_cast<double>(case_.head_dim));
  return 2e-5 + (bits.keys == 0 ? 0 : 4 * score_deviation) +
         2.5 / static_cast<double>(bits.values == 8 ? kWeightMax2 : kWeightMax1);
}

}  // namespace slipstream::turbo
