#include "device/attention/attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "device/attention/amx.h"
#include "device/attention/cache_side.h"
#include "device/attention/chunk_kernels.h"
#include "device/attention/kernel_choice.h"
#include "device/attention/scratch.h"
#include "device/codec/codec_kernels.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
// From so many rows on, AMX's sixteen at once are quicker than one after the other.
constexpr int kRowsForAmx = 4;
// AMX reads and writes rows in groups of sixteen.
constexpr std::size_t kRowsPadding = 16;
constexpr std::size_t kRowAlignment = 64;

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

std::size_t padded(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// What a thread needs beside the stack, kept from call to call.
struct Workspace {
  Scratch<std::uint8_t> key_bytes;
  Scratch<std::int8_t> value_bytes;
  Scratch<float> key_scales;
  Scratch<float> value_scales;
  Scratch<std::int8_t> query_digits;
  Scratch<std::int8_t> rotated_digits;
  Scratch<std::uint8_t> weight_digits;
  Scratch<std::int32_t> products;
  Scratch<float> scores;
  Scratch<float> vectors;
  Scratch<float> fitted_vectors;
  Scratch<float> outputs;
  Scratch<float> bias;
  Scratch<float> sums;
  Scratch<float> steps;
  Scratch<std::int32_t> offsets;
  Scratch<std::int32_t> rotated_offsets;
};

Workspace& thread_workspace() {
  thread_local Workspace workspace;
  return workspace;
}

struct Query {
  std::int64_t row;
  std::int64_t head;
  const std::uint16_t* mask;     // null: everything is seen
  const Visibility* visibility;  // by chunk
  int own_chunk;                 // of its own token; kUnknown: not written in this graph

  static constexpr int kUnknown = -2;
  // Most of its weight goes there: to be read in 8 bits where that is at hand.
  [[nodiscard]] bool wants_precise(int chunk) const {
    return own_chunk != kUnknown && (chunk == own_chunk || chunk + 1 == own_chunk || chunk == 0);
  }
};

constexpr std::size_t kQueriesMax = std::max(kBlockQueries, kGroupMax);

// Queries as the integers that keys are multiplied with.
struct QueryDigits {
  std::int8_t* digits = nullptr;    // [query][digit], digit_stride apart
  std::int32_t* offsets = nullptr;  // [query][part]: keys are stored as level + 128
  float factor[kQueriesMax];
};

struct Sides {
  CacheSide keys;
  CacheSide values;
  Sides(const AttentionTask& task, bool precise)
      : keys(task.keys, static_cast<int>(task.op->src[0]->ne[0]), precise),
        values(task.values, static_cast<int>(task.op->src[2]->ne[0]), precise) {}
};

class PieceAttention {
 public:
  PieceAttention(const AttentionTask& task, const Piece& piece, Workspace& space)
      : op_(task.op),
        params_(params_of(task.op)),
        coded_(task, false),
        precise_(task, true),
        keys_(coded_.keys),
        values_(coded_.values),
        own_cells_(precise_.keys.is_precise || precise_.values.is_precise ? task.own_cells
                                                                          : nullptr),
        stream_(task.first_stream + piece.stream),
        plan_(*task.plan),
        piece_(piece),
        space_(space),
        with_amx_(use_amx()) {}

  void run() {
    prepare();
    const std::int64_t n_cells = op_->src[1]->ne[1];
    for (int idx = piece_.first_chunk; idx < piece_.end_chunk; ++idx) {
      const std::int64_t first = static_cast<std::int64_t>(idx) * kChunkTokens;
      look_at(
          {.stream = stream_,
           .head = piece_.kv_head,
           .idx = idx,
           .n_tokens = static_cast<int>(std::min<std::int64_t>(kChunkTokens, n_cells - first))});
    }
    for (std::size_t q = 0; q < n_queries_; ++q) {
      sum_[q] = std::reduce(sums_ + q * kTileTokens, sums_ + (q + 1) * kTileTokens);
    }
    if (piece_.split >= 0) {
      keep_part();
    } else {
      for (std::size_t q = 0; q < n_queries_; ++q) finish(q);
    }
  }

 private:
  // --- queries

  void prepare() {
    const ggml_tensor* q = op_->src[0];
    const std::int64_t group = q->ne[2] / op_->src[1]->ne[2];
    n_queries_ = static_cast<std::size_t>(piece_.n_rows * group);
    const auto key_dim = static_cast<std::size_t>(keys_.head_dim);
    const auto value_dim = static_cast<std::size_t>(values_.head_dim);
    const std::size_t n_padded = padded(n_queries_, kRowsPadding);
    digit_stride_ = padded(key_dim, kRowAlignment);
    vectors_ = space_.vectors.get(n_padded * key_dim);
    outputs_ = space_.outputs.get(n_padded * value_dim);
    scores_ = space_.scores.get(n_padded * kChunkTokens);
    bias_ = space_.bias.get(n_padded * kChunkTokens);
    sums_ = space_.sums.get(n_padded * kTileTokens);
    std::fill_n(sums_, n_queries_ * kTileTokens, 0.0F);
    step_ = space_.steps.get(n_queries_ * static_cast<std::size_t>(values_.n_parts));
    std::fill_n(outputs_, n_queries_ * value_dim, 0.0F);
    if (keys_.cache != nullptr) {
      // A run of queries may begin anywhere, and AMX reads on to the end of its sixteenth row.
      const std::size_t n_digits = (n_queries_ * 2 + kRowsPadding) * digit_stride_;
      const std::size_t n_offsets = n_queries_ * static_cast<std::size_t>(keys_.n_parts);
      own_digits_.digits = space_.query_digits.get(n_digits);
      own_digits_.offsets = space_.offsets.get(n_offsets);
      if (keys_.fit() != nullptr) {
        rotated_digits_.digits = space_.rotated_digits.get(n_digits);
        rotated_digits_.offsets = space_.rotated_offsets.get(n_offsets);
      }
    }
    // Of keys, part after part; later of values.
    const std::size_t n_product_rows = padded(n_queries_ * 2, kRowsPadding);
    product_stride_ = n_product_rows * kChunkTokens;
    products_ = space_.products.get(
        n_product_rows *
        std::max(static_cast<std::size_t>(keys_.n_parts) * kChunkTokens, value_dim));
    weights_ =
        space_.weight_digits.get(product_stride_ * static_cast<std::size_t>(values_.n_parts));
    for (std::size_t i = 0; i < n_queries_; ++i) {
      const std::int64_t row = piece_.first_row + static_cast<std::int64_t>(i) / group;
      const std::int64_t head = piece_.kv_head * group + static_cast<std::int64_t>(i) % group;
      prepare(i, row, head);
    }
    if (keys_.cache != nullptr) prepare_digits();
  }

  // Codes of a fit are multiplied with queries in its basis, copies in 8 bits with rotated ones.
  void prepare_digits() {
    const auto key_dim = static_cast<std::size_t>(keys_.head_dim);
    const std::span vectors(vectors_, n_queries_ * key_dim);
    if (const KeyFit* fit = keys_.fit(); fit != nullptr) {
      const std::span fitted(space_.fitted_vectors.get(vectors.size()), vectors.size());
      fit->to_queries(piece_.kv_head, vectors, fitted);
      for (std::size_t i = 0; i < n_queries_; ++i) {
        make_digits(own_digits_, i, fitted.subspan(i * key_dim, key_dim));
      }
      if (own_cells_ == nullptr) return;  // nothing is read precisely
    }
    QueryDigits& digits = keys_.fit() == nullptr ? own_digits_ : rotated_digits_;
    for (std::size_t i = 0; i < n_queries_; ++i) {
      const std::span vector = vectors.subspan(i * key_dim, key_dim);
      rotate_fast(keys_.cache->rotation(), vector);
      make_digits(digits, i, vector);
    }
  }

  void prepare(std::size_t i, std::int64_t row, std::int64_t head) {
    const ggml_tensor* mask = op_->src[3];
    queries_[i] = {.row = row,
                   .head = head,
                   .mask = mask == nullptr ? nullptr
                                           : at<const std::uint16_t>(mask, row, head % mask->ne[2],
                                                                     piece_.stream % mask->ne[3]),
                   .visibility = plan_.work().mask_chunks().row(row, head, piece_.stream),
                   .own_chunk = own_chunk(row)};
    first_own_chunk_ = std::min(first_own_chunk_, queries_[i].own_chunk);
    last_own_chunk_ = std::max(last_own_chunk_, queries_[i].own_chunk);
    max_[i] = kMinusInfinity;
    slope_[i] = slope_of(params_.max_bias, head, op_->src[0]->ne[2]);
    centre_score_[i] = 0;
    const std::span vector(vectors_ + i * static_cast<std::size_t>(keys_.head_dim),
                           static_cast<std::size_t>(keys_.head_dim));
    std::memcpy(vector.data(), at<const float>(op_->src[0], row, head, piece_.stream),
                vector.size_bytes());
    is_number_[i] = std::ranges::all_of(vector, [](float x) { return std::isfinite(x); });
    if (keys_.cache == nullptr) return;
    for (std::size_t c = 0; const float centre : keys_.cache->centre(piece_.kv_head)) {
      centre_score_[i] += vector[c++] * centre;
    }
  }

  // Rows of a batch come stream after stream.
  [[nodiscard]] int own_chunk(std::int64_t row) const {
    if (own_cells_ == nullptr) return Query::kUnknown;
    const std::int64_t cell = index_at(own_cells_, piece_.stream * op_->src[0]->ne[1] + row);
    return static_cast<int>(cell % keys_.tensor->n_cells() / kChunkTokens);
  }

  // A query to integers: digits of 8 bits, with zeroes behind.
  void make_digits(QueryDigits& into, std::size_t i, std::span<const float> vector) {
    float peak = 0;
    for (const float value : vector) peak = std::max(peak, std::abs(value));
    const bool two = keys_.n_digits == 2;
    const float most = two ? kQueryMax2 : kQueryMax1;
    into.factor[i] = peak / most;
    const float per_step = peak > 0 && is_number_[i] ? most / peak : 0;
    std::int8_t* high = into.digits + i * (two ? 2 : 1) * digit_stride_;
    std::int8_t* low = high + digit_stride_;
    std::memset(high, 0, digit_stride_ * (two ? 2 : 1));
    std::int32_t* offsets = into.offsets + i * static_cast<std::size_t>(keys_.n_parts);
    std::fill_n(offsets, keys_.n_parts, 0);
    const auto part_channels = static_cast<std::size_t>(keys_.part_channels);
    for (std::size_t c = 0; c < vector.size(); ++c) {
      const auto steps =
          is_number_[i] ? static_cast<std::int32_t>(std::nearbyint(vector[c] * per_step)) : 0;
      // Keys are stored as level + 128.
      offsets[c / part_channels] -= 128 * steps;
      if (two) {
        const std::int32_t high_digit = (steps + 64) >> kQueryDigitShift;
        high[c] = static_cast<std::int8_t>(high_digit);
        low[c] = static_cast<std::int8_t>(steps - (high_digit << kQueryDigitShift));
      } else {
        high[c] = static_cast<std::int8_t>(steps);
      }
    }
  }

  // --- one chunk

  [[nodiscard]] bool on_amx(int n_rows) const { return with_amx_ && n_rows >= kRowsForAmx; }

  // Queries next to each other that see something of a chunk.
  struct Run {
    std::size_t first;
    std::size_t n;
  };

  // Of those that read it in 8 bits, or of the others.
  void find_runs(int chunk, bool is_kept, bool precisely) {
    n_runs_ = 0;
    const auto reads = [&](std::size_t q) {
      return queries_[q].visibility[chunk] != Visibility::kNone &&
             (is_kept && queries_[q].wants_precise(chunk)) == precisely;
    };
    for (std::size_t first = 0; first < n_queries_; ++first) {
      if (!reads(first)) continue;
      std::size_t end = first + 1;
      while (end < n_queries_ && reads(end)) ++end;
      runs_[n_runs_++] = {.first = first, .n = end - first};
      first = end;
    }
  }

  void look_at(const Chunk& chunk) {
    const bool is_kept = is_wanted(chunk.idx) && precise_.keys.has(stream_, chunk.idx) &&
                         precise_.values.has(stream_, chunk.idx);
    find_runs(chunk.idx, is_kept, false);
    look_at_runs(chunk);
    if (!is_kept) return;
    find_runs(chunk.idx, is_kept, true);
    use(precise_);
    look_at_runs(chunk);
    use(coded_);
  }

  // Whether some query may want it in 8 bits. Most chunks are far from all of them.
  [[nodiscard]] bool is_wanted(int chunk) const {
    return own_cells_ != nullptr &&
           (chunk == 0 || (first_own_chunk_ <= chunk + 1 && chunk <= last_own_chunk_));
  }

  void use(const Sides& sides) {
    keys_ = sides.keys;
    values_ = sides.values;
    digits_ = keys_.is_precise && keys_.cache->fit() != nullptr ? &rotated_digits_ : &own_digits_;
  }

  void look_at_runs(const Chunk& chunk) {
    if (n_runs_ == 0) return;  // what no query sees is never read
    load(chunk);
    for (std::size_t i = 0; i < n_runs_; ++i) {
      read_mask(chunk, runs_[i]);
      score(chunk, i);
      weigh(chunk, runs_[i]);
      add(chunk, runs_[i]);
    }
  }

  // Where a query sees only some of the chunk, what its mask adds to each score.
  void read_mask(const Chunk& chunk, const Run& run) {
    const auto [first, n] = run;
    for (std::size_t q = first; q < first + n; ++q) {
      if (queries_[q].visibility[chunk.idx] == Visibility::kAll) {
        bias_rows_[q] = nullptr;
      } else if (q > first && queries_[q].mask == queries_[q - 1].mask) {
        bias_rows_[q] = bias_rows_[q - 1];  // another head of the same row
      } else {
        const std::uint16_t* cells =
            queries_[q].mask + static_cast<std::ptrdiff_t>(chunk.idx) * kChunkTokens;
        std::uint16_t padded_cells[kChunkTokens] = {};
        if (chunk.n_tokens < kChunkTokens) {
          std::copy_n(cells, chunk.n_tokens, padded_cells);
          cells = padded_cells;
        }
        float* bias = bias_ + q * kChunkTokens;
        load_scales(cells, kChunkTokens, bias);
        bias_rows_[q] = bias;
      }
    }
  }

  // The dots of a run with one part of the keys.
  [[nodiscard]] DotRows dots_of(const Run& run, int part) const {
    const auto digits = static_cast<std::size_t>(keys_.n_digits);
    const std::size_t first_channel =
        static_cast<std::size_t>(part) * static_cast<std::size_t>(keys_.part_channels);
    return {.keys = key_bytes_ + first_channel * kTileTokens,
            .tile_bytes = static_cast<std::size_t>(keys_.head_dim) * kTileTokens,
            .n_tiles = 0,
            .n_channels = keys_.channels_of_part(part),
            .rows = digits_->digits + run.first * digits * digit_stride_ + first_channel,
            .row_stride = digit_stride_,
            .n_rows = static_cast<int>(run.n * digits),
            .dots = products_ + static_cast<std::size_t>(part) * product_stride_};
  }

  // Reads the chunk's keys and values and multiplies the first run's queries with the keys.
  void load(const Chunk& chunk) {
    ScanChunk work{};
    work.n_tiles = chunk.n_tiles();
    DotRows parts[n_scales(Side::kKey, 8, Rotation::kDimMax)];
    if (keys_.cache != nullptr) {
      work.key_form = keys_.key_form;
      work.key_dim = keys_.head_dim;
      work.key_codes = keys_.codes(chunk);
      work.key_bytes = space_.key_bytes.get(expanded_bytes(keys_.head_dim) + kReadPast);
      key_bytes_ = work.key_form.is_expanded() ? work.key_codes : work.key_bytes;
      for (int part = 0; part < keys_.n_parts; ++part) parts[part] = dots_of(runs_[0], part);
      work.parts = parts;
      work.n_parts = keys_.n_parts;
      work.dot = on_amx(parts[0].n_rows) ? amx_dot_rows : nullptr;
      key_scales_ = load_scales_of(keys_, chunk, space_.key_scales);
    }
    if (values_.cache != nullptr) {
      work.value_bits = values_.bits;
      work.value_dim = values_.head_dim;
      work.value_codes = values_.codes(chunk);
      work.value_bytes = value_bytes_ = space_.value_bytes.get(expanded_bytes(values_.head_dim));
      value_scales_ = load_scales_of(values_, chunk, space_.value_scales);
    }
    scan_chunk(work);
  }

  static float* load_scales_of(const CacheSide& side, const Chunk& chunk, Scratch<float>& memory) {
    const int n_all = kChunkTokens * side.n_parts;
    const int n = chunk.n_tiles() * side.n_parts * kTileTokens;
    float* scales = memory.get(static_cast<std::size_t>(n_all));
    load_scales(side.scales(chunk), n, scales);
    std::fill_n(scales + n, n_all - n, 0.0F);  // so that nothing times them is nothing
    return scales;
  }

  // Scores of plain keys, or the integers that scores are made of.
  void score(const Chunk& chunk, std::size_t run_idx) {
    const Run& run = runs_[run_idx];
    if (keys_.cache == nullptr) {
      for (std::size_t q = run.first; q < run.first + run.n; ++q) {
        score_plain(keys_.plain_rows(chunk), keys_.plain_stride(), chunk.n_tokens,
                    vectors_ + q * static_cast<std::size_t>(keys_.head_dim), keys_.head_dim,
                    scores_ + q * kChunkTokens);
      }
      return;
    }
    if (run_idx == 0) return;  // load() has done it
    for (int part = 0; part < keys_.n_parts; ++part) {
      DotRows work = dots_of(run, part);
      work.n_tiles = chunk.n_tiles();
      on_amx(work.n_rows) ? amx_dot_rows(work) : dot_rows(work);
    }
  }

  void weigh(const Chunk& chunk, const Run& run) {
    const bool plain_keys = keys_.cache == nullptr;
    const bool plain_values = values_.cache == nullptr;
    softmax_chunk({.n_queries = static_cast<int>(run.n),
                   .n_tokens = chunk.n_tokens,
                   .dots = plain_keys ? nullptr : products_,
                   .dot_part_stride = product_stride_,
                   .n_query_digits = keys_.n_digits,
                   .n_key_parts = keys_.n_parts,
                   .key_scales = key_scales_,
                   .offsets = plain_keys ? nullptr
                                         : digits_->offsets +
                                               run.first * static_cast<std::size_t>(keys_.n_parts),
                   .query_scales = digits_->factor + run.first,
                   .centre_scores = centre_score_ + run.first,
                   .scores = scores_ + run.first * kChunkTokens,
                   .bias = bias_rows_ + run.first,
                   .slopes = slope_ + run.first,
                   .scale = params_.scale,
                   .softcap = params_.softcap,
                   .max = max_ + run.first,
                   .weight_sums = sums_ + run.first * kTileTokens,
                   .rescale = rescale_ + run.first,
                   .value_scales = plain_values ? nullptr : value_scales_,
                   .n_weight_digits = values_.n_digits,
                   .n_value_parts = plain_values ? 0 : values_.n_parts,
                   .weights = weights_,
                   .weight_part_stride = product_stride_,
                   .weight_scales = step_,
                   .weight_scale_part_stride = n_queries_});
  }

  void add(const Chunk& chunk, const Run& run) {
    const auto [first, n] = run;
    const auto value_dim = static_cast<std::size_t>(values_.head_dim);
    if (values_.cache == nullptr) {
      for (std::size_t q = first; q < first + n; ++q) {
        accumulate_plain(values_.plain_rows(chunk), values_.plain_stride(), chunk.n_tokens,
                         scores_ + q * kChunkTokens, rescale_[q], values_.head_dim,
                         outputs_ + q * value_dim);
      }
      return;
    }
    const int digits = values_.n_digits;
    for (int part = 0; part < values_.n_parts; ++part) {
      const auto part_idx = static_cast<std::size_t>(part);
      const int n_channels = values_.channels_of_part(part);
      const std::size_t first_channel = part_idx * static_cast<std::size_t>(values_.part_channels);
      const WeightedSumRows work{.values = value_bytes_ + first_channel * kChunkTokens,
                                 .n_tiles = chunk.n_tiles(),
                                 .n_blocks = n_channels / kTileTokens,
                                 .weights = weights_ + part_idx * product_stride_,
                                 .n_rows = static_cast<int>(n) * digits,
                                 .sums = products_,
                                 .sum_stride = static_cast<std::size_t>(n_channels)};
      on_amx(work.n_rows) ? amx_weighted_sum_rows(work) : weighted_sum_rows(work);
      accumulate_output({.sums = products_,
                         .sum_stride = work.sum_stride,
                         .n_digits = digits,
                         .n_channels = n_channels,
                         .weight_scales = step_ + part_idx * n_queries_,
                         .rescale = rescale_ + first,
                         .n_queries = static_cast<int>(n),
                         .output = outputs_ + first * value_dim + first_channel,
                         .output_stride = value_dim});
    }
  }

  // --- results

  // A slot: max, sum and output of each query.
  [[nodiscard]] float* slot(int part) const {
    const Split& split = plan_.work().splits()[static_cast<std::size_t>(piece_.split)];
    return plan_.slot(split.first_slot + part);
  }

  void keep_part() {
    const std::size_t n_outputs = n_queries_ * static_cast<std::size_t>(values_.head_dim);
    float* kept = slot(piece_.part);
    std::copy_n(max_, n_queries_, kept);
    std::copy_n(sum_, n_queries_, kept + n_queries_);
    std::copy_n(outputs_, n_outputs, kept + 2 * n_queries_);
    Split& split = plan_.work().splits()[static_cast<std::size_t>(piece_.split)];
    const std::atomic_ref n_done(split.n_done);
    if (n_done.fetch_add(1, std::memory_order_acq_rel) + 1 < split.n_parts) return;
    n_done.store(0, std::memory_order_relaxed);
    std::copy_n(slot(0), n_queries_, max_);
    std::copy_n(slot(0) + n_queries_, n_queries_, sum_);
    std::copy_n(slot(0) + 2 * n_queries_, n_outputs, outputs_);
    for (int part = 1; part < split.n_parts; ++part) {
      for (std::size_t q = 0; q < n_queries_; ++q) merge(q, slot(part));
    }
    for (std::size_t q = 0; q < n_queries_; ++q) finish(q);
  }

  void merge(std::size_t q, const float* part) {
    const auto value_dim = static_cast<std::size_t>(values_.head_dim);
    const float part_max = part[q];
    if (part_max == kMinusInfinity) return;
    raise_max(q, part_max);
    const float factor = std::exp2(part_max - max_[q]);
    sum_[q] += part[n_queries_ + q] * factor;
    const float* part_output = part + 2 * n_queries_ + q * value_dim;
    for (std::size_t c = 0; c < value_dim; ++c) {
      outputs_[q * value_dim + c] += part_output[c] * factor;
    }
  }

  void raise_max(std::size_t q, float max) {
    if (max <= max_[q]) return;
    const float factor = std::exp2(max_[q] - max);
    const auto value_dim = static_cast<std::size_t>(values_.head_dim);
    for (std::size_t c = 0; c < value_dim; ++c) outputs_[q * value_dim + c] *= factor;
    sum_[q] *= factor;
    max_[q] = max;
  }

  void finish(std::size_t q) {
    float total = sum_[q];
    if (const ggml_tensor* sinks = op_->src[4]; sinks != nullptr) {
      // A sink takes weight and gives no value.
      const float sink = static_cast<const float*>(sinks->data)[queries_[q].head] * kLog2E;
      raise_max(q, sink);
      total = sum_[q] + std::exp2(sink - max_[q]);
    }
    float factor = total > 0 ? 1 / total : 0;
    // Integers cannot carry it: what is no number must not come out as an answer.
    if (!is_number_[q]) factor = std::numeric_limits<float>::quiet_NaN();
    const std::span output(outputs_ + q * static_cast<std::size_t>(values_.head_dim),
                           static_cast<std::size_t>(values_.head_dim));
    for (float& value : output) value *= factor;
    if (values_.cache != nullptr) rotate_back_fast(values_.cache->rotation(), output);
    std::memcpy(at<float>(op_, queries_[q].head, queries_[q].row, piece_.stream), output.data(),
                output.size_bytes());
  }

  const ggml_tensor* op_;
  Params params_;
  Sides coded_;
  Sides precise_;
  CacheSide keys_;  // what is being read: codes, or copies in 8 bits
  CacheSide values_;
  const ggml_tensor* own_cells_;
  std::int64_t stream_;
  SharedPlan& plan_;
  const Piece& piece_;
  Workspace& space_;
  bool with_amx_;

  std::size_t n_queries_ = 0;
  std::size_t digit_stride_ = 0;
  std::size_t product_stride_ = 0;
  std::size_t n_runs_ = 0;
  int first_own_chunk_ = std::numeric_limits<int>::max();
  int last_own_chunk_ = Query::kUnknown;
  const std::uint8_t* key_bytes_ = nullptr;
  std::int8_t* value_bytes_ = nullptr;
  float* key_scales_ = nullptr;
  float* value_scales_ = nullptr;
  const QueryDigits* digits_ = &own_digits_;  // for what is being read
  QueryDigits own_digits_;
  QueryDigits rotated_digits_;
  std::int32_t* products_ = nullptr;
  float* vectors_ = nullptr;
  float* outputs_ = nullptr;
  float* scores_ = nullptr;
  float* bias_ = nullptr;
  float* sums_ = nullptr;
  float* step_ = nullptr;
  std::uint8_t* weights_ = nullptr;
  Query queries_[kQueriesMax];
  Run runs_[kQueriesMax / 2 + 1];
  const float* bias_rows_[kQueriesMax];
  float max_[kQueriesMax];
  float sum_[kQueriesMax];
  float rescale_[kQueriesMax];
  float slope_[kQueriesMax];
  float centre_score_[kQueriesMax];
  bool is_number_[kQueriesMax];
};

AmxShape amx_shape(const AttentionTask& task) {
  const ggml_tensor* q = task.op->src[0];
  const std::int64_t group = q->ne[2] / task.op->src[1]->ne[2];
  const auto n_queries = static_cast<int>(std::min(q->ne[1] * group, kBlockQueries));
  const Sides sides(task, false);
  constexpr int kRowsMax = kRowsPadding;
  return {.key_rows = std::min(kRowsMax, n_queries * sides.keys.n_digits),
          .key_part_channels = sides.keys.part_channels,
          .value_rows = std::min(kRowsMax, n_queries * sides.values.n_digits)};
}

}  // namespace

bool is_cache_view(const ggml_tensor* view, const CacheTensor& cache) {
  const std::size_t element = ggml_type_size(view->type);
  const std::size_t stream_bytes = cache.stream_bytes();
  const std::int64_t head_dim = view->ne[0];
  return view->type == GGML_TYPE_F16 && view->nb[0] == element &&
         view->nb[1] == cache.row_bytes() &&
         view->nb[2] == element * static_cast<std::size_t>(head_dim) &&
         (view->ne[3] == 1 || view->nb[3] == stream_bytes) &&
         head_dim * view->ne[2] == cache.n_channels() && view->ne[1] <= cache.n_cells() &&
         cache_offset(view) % stream_bytes == 0;
}

void SharedPlan::reset(const ggml_tensor* op) {
  mask_ = op->src[3];
  shape_ = plan_shape(op);
  value_dim_ = op->src[2]->ne[0];
}

bool SharedPlan::fits(const ggml_tensor* op) const {
  return mask_ == op->src[3] && shape_ == plan_shape(op) && value_dim_ == op->src[2]->ne[0];
}

void SharedPlan::make(int n_threads) {
  work_.make(mask_, shape_, n_threads);
  const std::int64_t group = shape_.n_heads / shape_.n_kv_heads;
  slot_floats_ = static_cast<std::size_t>(std::max(kBlockQueries, group) * (value_dim_ + 2));
  slots_.resize(static_cast<std::size_t>(work_.n_slots()) * slot_floats_);
}

void run_attention(const AttentionTask& task, int thread_idx) {
  const AmxScope tiles(use_amx(), amx_shape(task));
  for (const Piece& piece : task.plan->work().pieces_of(thread_idx)) {
    PieceAttention(task, piece, thread_workspace()).run();
  }
}

}  // namespace slipstream::turbo
