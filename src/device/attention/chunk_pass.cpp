#include "device/attention/chunk_pass.h"

#include <algorithm>
#include <limits>

#include "device/attention/amx.h"
#include "device/attention/chunk_mask.h"
#include "device/attention/kernel_choice.h"

namespace slipstream::turbo {
namespace {

// From this many rows on, AMX, which multiplies sixteen at once, is faster than the vector kernels.
constexpr int kRowsForAmx = 4;

void load_scales_of(const CacheSide& side, const Chunk& chunk, float* scales) {
  const int n_all = kChunkTokens * side.n_parts;
  const int n = chunk.n_tiles() * side.n_parts * kTileTokens;
  load_scales(side.scales(chunk), n, scales);
  // Tokens behind the last tile have weight 0, but 0 times a stale scale may be NaN.
  std::fill_n(scales + n, n_all - n, 0.0F);
}

}  // namespace

ChunkPass::ChunkPass(const PieceContext& context, const PieceQueries& queries)
    : context_(context),
      queries_(queries),
      scratch_(context.scratch),
      params_(params_of(context.task.op)),
      with_amx_(use_amx()),
      sides_(&context.coded),
      quantised_(&context.scratch.coded) {
  const std::size_t n = queries.size();
  std::fill_n(scratch_.max.data(), n, -std::numeric_limits<float>::infinity());
  std::fill_n(scratch_.weight_sums.data(), n * kTileTokens, 0.0F);
  std::fill_n(scratch_.outputs.data(), n * scratch_.outputs.stride(), 0.0F);
}

void ChunkPass::process(int first, int end) {
  int chunk = first;
  while (chunk < end) {
    const int next = next_seen(chunk + 1);
    chunks_ahead_ = static_cast<std::size_t>(next - chunk);
    process_chunk(chunk);
    chunk = next;
  }
}

int ChunkPass::next_seen(int chunk) const {
  for (; chunk < context_.piece.end_chunk; ++chunk) {
    for (std::size_t q = 0; q < queries_.size(); ++q) {
      if (queries_[q].visibility[chunk] != Visibility::kNone) return chunk;
    }
  }
  return chunk;
}

void ChunkPass::process_chunk(int idx) {
  const Chunk chunk = context_.chunk(idx);
  const CacheSides& precise = context_.precise;
  const bool has_copy = queries_.may_want_precise(idx) && precise.keys.has(chunk.stream, idx) &&
                        precise.values.has(chunk.stream, idx);
  find_runs(idx, has_copy, false);
  process_runs(chunk);
  if (!has_copy) return;
  find_runs(idx, has_copy, true);
  read_from(precise);
  process_runs(chunk);
  read_from(context_.coded);
}

// Finds the runs of the queries that read the 8-bit copy (precisely), or of the other queries.
void ChunkPass::find_runs(int chunk, bool has_copy, bool precisely) {
  n_runs_ = 0;
  const auto reads = [&](std::size_t q) {
    return queries_[q].visibility[chunk] != Visibility::kNone &&
           (has_copy && queries_[q].wants_precise(chunk)) == precisely;
  };
  for (std::size_t first = 0; first < queries_.size(); ++first) {
    if (!reads(first)) continue;
    std::size_t end = first + 1;
    while (end < queries_.size() && reads(end)) ++end;
    runs_[n_runs_++] = {.first = first, .n = end - first};
    first = end;
  }
}

void ChunkPass::read_from(const CacheSides& sides) {
  sides_ = &sides;
  const CacheSide& keys = sides.keys;
  quantised_ =
      keys.is_precise && keys.cache->fit() != nullptr ? &scratch_.rotated : &scratch_.coded;
}

void ChunkPass::process_runs(const Chunk& chunk) {
  if (n_runs_ == 0) return;
  load(chunk);
  for (std::size_t i = 0; i < n_runs_; ++i) {
    read_chunk_mask(queries_, chunk, runs_[i].first, runs_[i].n, scratch_, bias_rows_);
    score(chunk, i);
    softmax(chunk, runs_[i]);
    weighted_sum(chunk, runs_[i]);
  }
}

// Reads the chunk's keys and values and multiplies the first run's queries with the keys.
void ChunkPass::load(const Chunk& chunk) {
  const auto& [keys, values] = *sides_;
  ScanChunk work{};
  work.n_tiles = chunk.n_tiles();
  work.chunks_ahead = chunks_ahead_;
  DotRows parts[n_scales(Side::kKey, 8, kHeadDimMax)];
  if (keys.cache != nullptr) {
    work.key_form = keys.key_form;
    work.key_dim = keys.head_dim;
    work.key_codes = keys.codes(chunk);
    work.key_bytes = scratch_.key_bytes.data();
    key_bytes_ = work.key_form.is_expanded() ? work.key_codes : work.key_bytes;
    for (int part = 0; part < keys.n_parts; ++part) parts[part] = dots_of(runs_[0], part);
    work.parts = parts;
    work.n_parts = keys.n_parts;
    work.dot = on_amx(parts[0].n_rows) ? amx_dot_rows : nullptr;
    load_scales_of(keys, chunk, scratch_.key_scales.data());
  }
  if (values.cache != nullptr) {
    work.value_bits = values.bits;
    work.value_dim = values.head_dim;
    work.value_codes = values.codes(chunk);
    work.value_bytes = scratch_.value_bytes.data();
    load_scales_of(values, chunk, scratch_.value_scales.data());
  }
  scan_chunk(work);
}

// Computes the scores of plain keys, or the integer products that scores are computed from.
void ChunkPass::score(const Chunk& chunk, std::size_t run_idx) {
  const Run& run = runs_[run_idx];
  const CacheSide& keys = sides_->keys;
  if (keys.cache == nullptr) {
    for (std::size_t q = run.first; q < run.first + run.n; ++q) {
      score_plain(keys.plain_rows(chunk), keys.plain_stride(), chunk.n_tokens,
                  scratch_.vectors.row(q), keys.head_dim, scratch_.scores.row(q));
    }
    return;
  }
  if (run_idx == 0) return;  // load() has done it
  for (int part = 0; part < keys.n_parts; ++part) {
    DotRows work = dots_of(run, part);
    work.n_tiles = chunk.n_tiles();
    on_amx(work.n_rows) ? amx_dot_rows(work) : dot_rows(work);
  }
}

void ChunkPass::softmax(const Chunk& chunk, const Run& run) {
  const auto& [keys, values] = *sides_;
  const std::size_t first = run.first;
  const bool plain_keys = keys.cache == nullptr;
  const bool plain_values = values.cache == nullptr;
  softmax_chunk({.n_queries = static_cast<int>(run.n),
                 .n_tokens = chunk.n_tokens,
                 .dots = plain_keys ? nullptr : scratch_.products.data(),
                 .dot_part_stride = scratch_.part_stride(),
                 .n_query_digits = keys.n_digits,
                 .n_key_parts = keys.n_parts,
                 .key_scales = scratch_.key_scales.data(),
                 .offsets = plain_keys ? nullptr : quantised_->offsets.row(first),
                 .query_scales = plain_keys ? nullptr : quantised_->scales.row(first),
                 .centre_scores = scratch_.centre_scores.row(first),
                 .scores = scratch_.scores.row(first),
                 .bias = bias_rows_ + first,
                 .slopes = scratch_.slopes.row(first),
                 .scale = params_.scale,
                 .softcap = params_.softcap,
                 .max = scratch_.max.row(first),
                 .weight_sums = scratch_.weight_sums.row(first),
                 .rescale = scratch_.rescale.row(first),
                 .value_scales = plain_values ? nullptr : scratch_.value_scales.data(),
                 .n_weight_digits = values.n_digits,
                 .n_value_parts = plain_values ? 0 : values.n_parts,
                 .weights = scratch_.weights.data(),
                 .weight_part_stride = scratch_.part_stride(),
                 .weight_scales = scratch_.weight_scales.data(),
                 .weight_scale_part_stride = scratch_.weight_scales.stride()});
}

// output = output * rescale + weights * values
void ChunkPass::weighted_sum(const Chunk& chunk, const Run& run) {
  const auto [first, n] = run;
  const CacheSide& values = sides_->values;
  if (values.cache == nullptr) {
    for (std::size_t q = first; q < first + n; ++q) {
      accumulate_plain(values.plain_rows(chunk), values.plain_stride(), chunk.n_tokens,
                       scratch_.scores.row(q), *scratch_.rescale.row(q), values.head_dim,
                       scratch_.outputs.row(q));
    }
    return;
  }
  const int n_digits = values.n_digits;
  for (int part = 0; part < values.n_parts; ++part) {
    const auto part_idx = static_cast<std::size_t>(part);
    const int n_channels = values.channels_of_part(part);
    const std::size_t first_channel = part_idx * static_cast<std::size_t>(values.part_channels);
    const WeightedSumRows work{.values = scratch_.value_bytes.data() + first_channel * kChunkTokens,
                               .n_tiles = chunk.n_tiles(),
                               .n_blocks = n_channels / kTileTokens,
                               .weights = scratch_.weights.row(part_idx),
                               .n_rows = static_cast<int>(n) * n_digits,
                               .sums = scratch_.products.data(),
                               .sum_stride = static_cast<std::size_t>(n_channels)};
    on_amx(work.n_rows) ? amx_weighted_sum_rows(work) : weighted_sum_rows(work);
    accumulate_output({.sums = work.sums,
                       .sum_stride = work.sum_stride,
                       .n_digits = n_digits,
                       .n_channels = n_channels,
                       .weight_scales = scratch_.weight_scales.row(part_idx),
                       .rescale = scratch_.rescale.row(first),
                       .n_queries = static_cast<int>(n),
                       .output = scratch_.outputs.row(first) + first_channel,
                       .output_stride = scratch_.outputs.stride()});
  }
}

// The products of a run with one part of the keys.
DotRows ChunkPass::dots_of(const Run& run, int part) const {
  const CacheSide& keys = sides_->keys;
  const auto n_digits = static_cast<std::size_t>(keys.n_digits);
  const std::size_t first_channel =
      static_cast<std::size_t>(part) * static_cast<std::size_t>(keys.part_channels);
  return {.keys = key_bytes_ + first_channel * kTileTokens,
          .tile_bytes = static_cast<std::size_t>(keys.head_dim) * kTileTokens,
          .n_tiles = 0,
          .n_channels = keys.channels_of_part(part),
          .rows = quantised_->digits.row(run.first * n_digits) + first_channel,
          .row_stride = quantised_->digits.stride(),
          .n_rows = static_cast<int>(run.n * n_digits),
          .dots = scratch_.products.row(static_cast<std::size_t>(part))};
}

bool ChunkPass::on_amx(int n_rows) const { return with_amx_ && n_rows >= kRowsForAmx; }

}  // namespace slipstream::turbo
