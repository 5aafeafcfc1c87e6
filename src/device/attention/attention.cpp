#include "device/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "device/attention/tile_kernels.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {
namespace {

constexpr std::int64_t kQueryBlock = 16;  // query rows that share one expansion of a tile
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct Params {
  float scale;
  float max_bias;
  float softcap;
};

Params params_of(const ggml_tensor* op) {
  Params params{};
  std::memcpy(&params, op->op_params, sizeof(params));
  // As ggml does it: softcap * tanh(score * scale / softcap).
  if (params.softcap != 0) params.scale /= params.softcap;
  return params;
}

template <typename T>
T* at(const ggml_tensor* tensor, std::int64_t i1, std::int64_t i2, std::int64_t i3) {
  return reinterpret_cast<T*>(
      static_cast<char*>(tensor->data) + static_cast<std::size_t>(i1) * tensor->nb[1] +
      static_cast<std::size_t>(i2) * tensor->nb[2] + static_cast<std::size_t>(i3) * tensor->nb[3]);
}

// The slope of a head's linear bias (ALiBi); 1 where there is none.
float slope_of(float max_bias, std::int64_t head, std::int64_t n_heads) {
  if (max_bias <= 0) return 1;
  const auto n_log2 =
      static_cast<std::int64_t>(std::exp2(std::floor(std::log2(static_cast<double>(n_heads)))));
  const double m0 = std::exp2(-static_cast<double>(max_bias) / static_cast<double>(n_log2));
  const double m1 = std::exp2(-static_cast<double>(max_bias) / 2 / static_cast<double>(n_log2));
  return static_cast<float>(head < n_log2
                                ? std::pow(m0, static_cast<double>(head + 1))
                                : std::pow(m1, static_cast<double>(2 * (head - n_log2) + 1)));
}

// Tiles of one head of one stream, from codes or from plain f16 rows.
class TileReader {
 public:
  TileReader(CacheTensor& cache, int head_dim) : cache_(cache), head_dim_(head_dim) {}

  // Null where the rows are plain: then nothing is rotated.
  [[nodiscard]] const Rotation* rotation() const {
    const CompressedCache* compressed = cache_.compressed();
    return compressed == nullptr ? nullptr : &compressed->rotation();
  }

  // What every row of the head has in common and the tiles leave out.
  [[nodiscard]] std::span<const float> centre(std::int64_t head) const {
    const CompressedCache* compressed = cache_.compressed();
    return compressed == nullptr ? std::span<const float>() : compressed->centre(head);
  }

  void expand(std::int64_t stream, std::int64_t head, std::int64_t tile_idx,
              std::span<float> tile) const {
    if (const CompressedCache* cache = cache_.compressed(); cache != nullptr) {
      expand_tile(cache->shape().side, cache->shape().bits, cache->codes(stream, head, tile_idx),
                  cache->scales(stream, head, tile_idx), tile);
    } else {
      expand_plain(stream, head, tile_idx, tile);
    }
  }

 private:
  void expand_plain(std::int64_t stream, std::int64_t head, std::int64_t tile_idx,
                    std::span<float> tile) const {
    std::vector<float> vector(static_cast<std::size_t>(head_dim_));
    for (std::size_t token = 0; token < kTileTokens; ++token) {
      const std::int64_t cell = tile_idx * kTileTokens + static_cast<std::int64_t>(token);
      if (cell >= cache_.n_cells()) break;  // masked by the caller
      const auto* row = reinterpret_cast<const ggml_fp16_t*>(
          cache_.plain() +
          static_cast<std::size_t>(stream * cache_.n_cells() + cell) * cache_.row_bytes());
      ggml_fp16_to_fp32_row(row + head * head_dim_, vector.data(), head_dim_);
      for (std::size_t channel = 0; channel < vector.size(); ++channel) {
        const auto [slot, position] =
            place_in_tile(cache_.side(), static_cast<int>(token), static_cast<int>(channel));
        tile[static_cast<std::size_t>(position * kTileTokens + slot)] = vector[channel];
      }
    }
  }

  CacheTensor& cache_;
  int head_dim_;
};

// One query of the block: its head's slope, its mask row, and the softmax so far.
struct Query {
  std::int64_t row;
  std::int64_t head;
  float slope;
  const ggml_fp16_t* mask;  // null: everything is seen
  float centre_score;       // the query's product with the centre of the keys
  float max;
  float sum;
  std::span<float> vector;
  std::span<float> output;
};

class BlockAttention {
 public:
  explicit BlockAttention(const AttentionTask& task)
      : op_(task.op),
        params_(params_of(task.op)),
        key_dim_(static_cast<int>(task.op->src[0]->ne[0])),
        value_dim_(static_cast<int>(task.op->src[2]->ne[0])),
        keys_(*task.keys, key_dim_),
        values_(*task.values, value_dim_),
        first_stream_(task.first_stream) {}

  void run(std::int64_t stream, std::int64_t kv_head, std::int64_t first_row,
           std::int64_t last_row) {
    start(stream, kv_head, first_row, last_row);
    const std::int64_t n_cells = op_->src[1]->ne[1];
    for (std::int64_t tile = 0; tile * kTileTokens < n_cells; ++tile) {
      step(stream, kv_head, tile,
           std::min<std::int64_t>(kTileTokens, n_cells - tile * kTileTokens));
    }
    for (Query& query : queries_) finish(query, stream, kv_head);
  }

 private:
  void start(std::int64_t stream, std::int64_t kv_head, std::int64_t first_row,
             std::int64_t last_row) {
    const ggml_tensor* q = op_->src[0];
    const ggml_tensor* mask = op_->src[3];
    const std::int64_t group = q->ne[2] / op_->src[1]->ne[2];
    const auto n_queries = static_cast<std::size_t>((last_row - first_row) * group);
    queries_.clear();
    vectors_.assign(n_queries * static_cast<std::size_t>(key_dim_), 0);
    outputs_.assign(n_queries * static_cast<std::size_t>(value_dim_), 0);
    for (std::int64_t row = first_row; row < last_row; ++row) {
      for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        const std::size_t i = queries_.size();
        Query query{.row = row,
                    .head = head,
                    .slope = slope_of(params_.max_bias, head, q->ne[2]),
                    .mask = mask == nullptr ? nullptr
                                            : at<const ggml_fp16_t>(mask, row, head % mask->ne[2],
                                                                    stream % mask->ne[3]),
                    .centre_score = 0,
                    .max = kMinusInfinity,
                    .sum = 0,
                    .vector = slice(vectors_, i, key_dim_),
                    .output = slice(outputs_, i, value_dim_)};
        std::memcpy(query.vector.data(), at<const float>(q, row, head, stream),
                    query.vector.size_bytes());
        for (std::size_t c = 0; const float centre : keys_.centre(kv_head)) {
          query.centre_score += query.vector[c++] * centre;
        }
        if (keys_.rotation() != nullptr) keys_.rotation()->forward(query.vector);
        queries_.push_back(query);
      }
    }
  }

  // The mask of one query for one tile as numbers to add; false if it sees none of the tile.
  bool read_mask(const Query& query, std::int64_t tile, std::int64_t n_cells,
                 std::span<float, kTileTokens> bias) const {
    bool any = false;
    for (std::int64_t i = 0; i < kTileTokens; ++i) {
      float value = 0;
      if (i >= n_cells) {
        value = kMinusInfinity;
      } else if (query.mask != nullptr) {
        value = query.slope * ggml_fp16_to_fp32(query.mask[tile * kTileTokens + i]);
      }
      bias[static_cast<std::size_t>(i)] = value;
      any = any || value != kMinusInfinity;
    }
    return any;
  }

  void step(std::int64_t stream, std::int64_t kv_head, std::int64_t tile, std::int64_t n_cells) {
    bool expanded = false;
    for (Query& query : queries_) {
      alignas(64) float bias_data[kTileTokens];
      alignas(64) float score_data[kTileTokens];
      const std::span<float, kTileTokens> bias(bias_data);
      const std::span<float, kTileTokens> scores(score_data);
      if (!read_mask(query, tile, n_cells, bias)) continue;
      if (!expanded) {  // only now: a tile that no query of the block sees is never expanded
        key_tile_.resize(static_cast<std::size_t>(key_dim_ * kTileTokens));
        value_tile_.resize(static_cast<std::size_t>(value_dim_ * kTileTokens));
        keys_.expand(first_stream_ + stream, kv_head, tile, key_tile_);
        values_.expand(first_stream_ + stream, kv_head, tile, value_tile_);
        expanded = true;
      }
      score_tile(query.vector, key_tile_, scores);
      float tile_max = kMinusInfinity;
      for (std::size_t i = 0; i < kTileTokens; ++i) {
        float score = (scores[i] + query.centre_score) * params_.scale;
        if (params_.softcap != 0) score = params_.softcap * std::tanh(score);
        scores[i] = score + bias[i];
        tile_max = std::max(tile_max, scores[i]);
      }
      if (tile_max == kMinusInfinity) continue;
      if (tile_max > query.max) rescale(query, tile_max);
      query.sum += exp_tile(scores, query.max);
      accumulate_tile(scores, value_tile_, query.output);
    }
  }

  static void rescale(Query& query, float max) {
    const float factor = query.max == kMinusInfinity ? 0 : std::exp(query.max - max);
    if (query.sum > 0) scale_vector(query.output, factor);
    query.sum *= factor;
    query.max = max;
  }

  void finish(Query& query, std::int64_t stream, std::int64_t kv_head) {
    float total = query.sum;
    if (const ggml_tensor* sinks = op_->src[4]; sinks != nullptr) {
      // A sink takes weight and gives no value.
      const float sink = static_cast<const float*>(sinks->data)[query.head];
      if (sink > query.max) rescale(query, sink);
      total = query.sum + std::exp(sink - query.max);
    }
    const float factor = total > 0 ? 1 / total : 0;
    scale_vector(query.output, factor);
    if (values_.rotation() != nullptr) values_.rotation()->inverse(query.output);
    for (std::size_t c = 0; const float centre : values_.centre(kv_head)) {
      query.output[c++] += centre * query.sum * factor;
    }
    std::memcpy(at<float>(op_, query.head, query.row, stream), query.output.data(),
                query.output.size_bytes());
  }

  static std::span<float> slice(std::vector<float>& all, std::size_t i, int n) {
    return std::span(all).subspan(i * static_cast<std::size_t>(n), static_cast<std::size_t>(n));
  }

  const ggml_tensor* op_;
  Params params_;
  int key_dim_;
  int value_dim_;
  TileReader keys_;
  TileReader values_;
  std::int64_t first_stream_;
  std::vector<Query> queries_;
  std::vector<float> vectors_;
  std::vector<float> outputs_;
  std::vector<float> key_tile_;
  std::vector<float> value_tile_;
};

}  // namespace

bool is_cache_view(const ggml_tensor* view, const CacheTensor& cache) {
  const std::size_t element = ggml_type_size(view->type);
  const std::size_t stream_bytes = cache.row_bytes() * static_cast<std::size_t>(cache.n_cells());
  const std::int64_t head_dim = view->ne[0];
  return view->type == GGML_TYPE_F16 && view->nb[0] == element &&
         view->nb[1] == cache.row_bytes() &&
         view->nb[2] == element * static_cast<std::size_t>(head_dim) &&
         (view->ne[3] == 1 || view->nb[3] == stream_bytes) &&
         head_dim * view->ne[2] == cache.n_channels() && view->ne[1] <= cache.n_cells() &&
         cache_offset(view) % stream_bytes == 0;
}

void run_attention(const AttentionTask& task, int thread_idx, int n_threads) {
  const ggml_tensor* q = task.op->src[0];
  const std::int64_t n_rows = q->ne[1];
  const std::int64_t n_kv_heads = task.op->src[1]->ne[2];
  const std::int64_t n_blocks = (n_rows + kQueryBlock - 1) / kQueryBlock;
  const std::int64_t n_jobs = q->ne[3] * n_kv_heads * n_blocks;
  BlockAttention attention(task);
  for (std::int64_t job = thread_idx; job < n_jobs; job += n_threads) {
    const std::int64_t block = job % n_blocks;
    const std::int64_t kv_head = job / n_blocks % n_kv_heads;
    const std::int64_t stream = job / n_blocks / n_kv_heads;
    attention.run(stream, kv_head, block * kQueryBlock,
                  std::min(n_rows, (block + 1) * kQueryBlock));
  }
}

}  // namespace slipstream::turbo
