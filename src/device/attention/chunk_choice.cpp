#include "device/attention/chunk_choice.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "device/attention/amx.h"
#include "device/attention/amx_signs.h"
#include "device/attention/chunk_mask.h"
#include "device/attention/kernel_choice.h"
#include "device/attention/query_kernels.h"
#include "device/attention/sign_kernels.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
// From this many queries on, expanding signs for AMX is faster than looking up sums.
constexpr std::size_t kQueriesForAmx = 16;
// With fewer chunks for one candidate two passes would read hardly less than one.
constexpr std::int64_t kTwoPassesFrom = 2;
// The first pass reads one plane of four, but at least 64 channels: with 32 it loses
// tokens, and AMX multiplies with 64 as fast as with fewer.
constexpr std::size_t kFirstPassShare = 4;
constexpr std::size_t kFirstPlanesMin = 8;

// Consecutive queries that choose together.
struct Chooser {
  std::size_t first;
  std::size_t end;
  std::int64_t n_chunks;  // how many they may read
};

class Choice {
 public:
  Choice(const PieceContext& context, PieceQueries& queries);
  void choose();

 private:
  [[nodiscard]] bool continues(std::size_t q) const;
  [[nodiscard]] bool sees(std::size_t q, int chunk) const {
    return queries_[q].visibility[chunk] != Visibility::kNone;
  }
  void find_choosers();
  void combine_visibility(const Chooser& chooser);
  void prepare_queries();
  void choose_for(const Chooser& chooser);
  [[nodiscard]] bool uses_amx(const Chooser& chooser) const;
  [[nodiscard]] std::size_t n_first_planes() const;
  [[nodiscard]] std::vector<std::uint16_t> loudest_planes(const Chooser& chooser,
                                                          std::size_t n) const;
  void estimate(const Chooser& chooser, std::span<const std::uint16_t> planes);
  void scan(const Chooser& chooser, std::span<const std::uint16_t> planes);
  void scan_on_amx(const Chooser& chooser, std::span<const std::uint16_t> planes);
  void estimate_masked(int idx, std::size_t first, std::size_t n,
                       std::span<const std::uint16_t> planes);
  void score(const Chooser& chooser);
  void keep_best(std::int64_t n);
  void keep_always(const Chooser& chooser);
  void hide_others(const Chooser& chooser);

  const PieceContext& context_;
  PieceQueries& queries_;
  PieceScratch& scratch_;
  const CacheSide& keys_;
  const KeySigns& signs_;
  const QuantisedQueries& quantised_;
  bool with_amx_;
  int n_chunks_;
  std::vector<Chooser> choosers_;
  std::vector<std::uint16_t> all_planes_;
  // Of the chooser whose turn it is:
  std::vector<Visibility> combined_;  // by chunk
  std::vector<int> candidates_;       // chunks, in order
  std::vector<int> whole_;            // those of which nothing is hidden
  std::vector<float> scores_;         // by chunk
  std::vector<bool> is_kept_;         // by chunk: read whatever its score
};

Choice::Choice(const PieceContext& context, PieceQueries& queries)
    : context_(context),
      queries_(queries),
      scratch_(context.scratch),
      keys_(context.coded.keys),
      signs_(*keys_.cache->signs()),
      quantised_(keys_.fit() == nullptr ? scratch_.coded : scratch_.rotated),
      // The tile registers are configured for the parts of a key (amx.h).
      with_amx_(use_amx() && keys_.n_parts == 1 && keys_.part_channels > 32),
      n_chunks_(context.task.plan->work().mask_chunks().n_chunks()),
      all_planes_(static_cast<std::size_t>(n_sign_planes(keys_.head_dim))) {
  std::ranges::iota(all_planes_, std::uint16_t{0});
}

void Choice::choose() {
  find_choosers();
  bool is_prepared = false;
  for (const Chooser& chooser : choosers_) {
    combine_visibility(chooser);
    if (static_cast<double>(candidates_.size()) <=
        kReadsAllUpTo * static_cast<double>(chooser.n_chunks)) {
      continue;
    }
    if (!std::exchange(is_prepared, true)) prepare_queries();
    choose_for(chooser);
  }
}

// Whether a query is of the same sequence as the one before it: it sees the other's token.
bool Choice::continues(std::size_t q) const {
  const Query& query = queries_[q];
  const Query& before = queries_[q - 1];
  if (query.row == before.row) return true;
  const ggml_tensor* own_cells = context_.task.own_cells;
  if (own_cells == nullptr || query.mask == nullptr) return false;
  const std::int64_t n_rows = context_.task.op->src[0]->ne[1];
  const std::int64_t row = index_at(own_cells, context_.piece.stream * n_rows + before.row);
  return query.mask[row % keys_.tensor->n_cells()] != kHidden;
}

void Choice::find_choosers() {
  for (std::size_t q = 0; q < queries_.size(); ++q) {
    if (q == 0 || !continues(q)) choosers_.push_back({.first = q, .end = q, .n_chunks = 0});
    choosers_.back().end = q + 1;
  }
  for (Chooser& chooser : choosers_) {
    const bool is_prompt = queries_[chooser.first].row != queries_[chooser.end - 1].row;
    chooser.n_chunks = keys_.cache->shape().attend * (is_prompt ? kPromptFactor : 1) / kChunkTokens;
  }
}

// What its queries together see of each chunk: kAll if all of them see all of it, kNone if none
// sees anything. What is seen are the first candidates.
void Choice::combine_visibility(const Chooser& chooser) {
  const std::span first(queries_[chooser.first].visibility, static_cast<std::size_t>(n_chunks_));
  combined_.assign(first.begin(), first.end());
  for (std::size_t q = chooser.first + 1; q < chooser.end; ++q) {
    const Visibility* one = queries_[q].visibility;
    if (one == queries_[q - 1].visibility) continue;  // another head of the same row
    for (std::size_t chunk = 0; chunk < combined_.size(); ++chunk) {
      if (one[chunk] != combined_[chunk]) combined_[chunk] = Visibility::kPartial;
    }
  }
  candidates_.clear();
  for (int chunk = 0; chunk < n_chunks_; ++chunk) {
    if (combined_[static_cast<std::size_t>(chunk)] != Visibility::kNone) {
      candidates_.push_back(chunk);
    }
  }
}

void Choice::prepare_queries() {
  const AttentionParams params = params_of(context_.task.op);
  const float scale = params.scale * (params.softcap != 0 ? params.softcap : 1);
  const std::size_t n = queries_.size();
  scratch_.sign_tables.resize(n, sign_table_bytes(keys_.head_dim));
  scratch_.table_gains.resize(n);
  scratch_.digit_tiles.resize((n + kAmxRows - 1) / kAmxRows * n_digit_tiles(all_planes_.size()),
                              kDigitTileBytes);
  scratch_.digit_gains.resize(n);
  // Rows are an odd number of cache lines long, because estimates of a chunk are written together.
  constexpr std::size_t kLineFloats = 16;
  const std::size_t n_lines = static_cast<std::size_t>(n_chunks_) / kLineFloats + 1;
  scratch_.estimates.resize(n, (n_lines | 1) * kLineFloats);
  scratch_.visibility.resize(n, static_cast<std::size_t>(n_chunks_));
  for (std::size_t q = 0; q < n; ++q) {
    const std::span vector(scratch_.vectors.row(q), static_cast<std::size_t>(keys_.head_dim));
    const float peak = queries_[q].is_finite ? peak_of(vector) : 0;
    *scratch_.table_gains.row(q) =
        scale * make_sign_tables(vector, peak, scratch_.sign_tables.row(q));
    *scratch_.digit_gains.row(q) = scale * *quantised_.scales.row(q);
  }
}

void Choice::choose_for(const Chooser& chooser) {
  keep_always(chooser);
  const std::int64_t n_candidates =
      kCandidateFactor * keys_.cache->shape().attend / std::int64_t{kChunkTokens};
  const std::size_t n_first = n_first_planes();
  if (std::ssize(candidates_) > kTwoPassesFrom * n_candidates && n_first < all_planes_.size()) {
    estimate(chooser, loudest_planes(chooser, n_first));
    keep_best(std::max(n_candidates, chooser.n_chunks));
  }
  estimate(chooser, all_planes_);
  keep_best(chooser.n_chunks);
  hide_others(chooser);
}

bool Choice::uses_amx(const Chooser& chooser) const {
  return with_amx_ && chooser.end - chooser.first >= kQueriesForAmx;
}

std::size_t Choice::n_first_planes() const {
  return std::max(all_planes_.size() / kFirstPassShare / 2 * 2, kFirstPlanesMin);
}

// The planes in which the queries have most of their squares, so that they tell most about scores.
std::vector<std::uint16_t> Choice::loudest_planes(const Chooser& chooser, std::size_t n) const {
  std::vector<float> squares(all_planes_.size());
  for (std::size_t q = chooser.first; q < chooser.end; ++q) {
    if (!queries_[q].is_finite) continue;
    const float* channels = scratch_.vectors.row(q);
    for (float& sum : squares) {
      sum = std::inner_product(channels, channels + 8, channels, sum);
      channels += 8;
    }
  }
  std::vector<std::uint16_t> planes = all_planes_;
  std::ranges::stable_sort(planes, std::greater<>(), [&](std::uint16_t i) { return squares[i]; });
  planes.resize(n);
  std::ranges::sort(planes);
  return planes;
}

// The estimates of its candidates, and what they make of the chunks for the queries together.
void Choice::estimate(const Chooser& chooser, std::span<const std::uint16_t> planes) {
  for (std::size_t q = chooser.first; q < chooser.end; ++q) {
    std::fill_n(scratch_.estimates.row(q), n_chunks_, kNothing);
  }
  whole_.clear();
  for (const int chunk : candidates_) {
    if (combined_[static_cast<std::size_t>(chunk)] == Visibility::kAll &&
        context_.chunk(chunk).n_tokens == kChunkTokens) {
      whole_.push_back(chunk);
      continue;
    }
    for (std::size_t q = chooser.first; q < chooser.end; ++q) {
      const std::size_t first = q;
      while (q < chooser.end && sees(q, chunk)) ++q;
      if (q > first) estimate_masked(chunk, first, q - first, planes);
    }
  }
  uses_amx(chooser) ? scan_on_amx(chooser, planes) : scan(chooser, planes);
  score(chooser);
}

void Choice::scan(const Chooser& chooser, std::span<const std::uint16_t> planes) {
  const Chunk first = context_.chunk(0);
  scan_signs({.signs = signs_.signs(first.stream, first.head, 0),
              .plane_bytes = signs_.plane_bytes(),
              .planes = planes,
              .scales = signs_.scales(first.stream, first.head, 0),
              .chunks = whole_,
              .tables = scratch_.sign_tables.row(chooser.first),
              .row_tables = scratch_.sign_tables.stride(),
              .n_rows = static_cast<int>(chooser.end - chooser.first),
              .gains = scratch_.table_gains.row(chooser.first),
              .best = scratch_.estimates.row(chooser.first),
              .best_stride = scratch_.estimates.stride(),
              .dots = scratch_.products.data()});
}

void Choice::scan_on_amx(const Chooser& chooser, std::span<const std::uint16_t> planes) {
  const Chunk first = context_.chunk(0);
  const auto n_rows = static_cast<int>(chooser.end - chooser.first);
  make_digit_tiles(quantised_.digits.row(chooser.first), quantised_.digits.stride(), n_rows, planes,
                   scratch_.digit_tiles.data());
  amx_scan_signs({.signs = signs_.signs(first.stream, first.head, 0),
                  .plane_bytes = signs_.plane_bytes(),
                  .planes = planes,
                  .scales = signs_.scales(first.stream, first.head, 0),
                  .chunks = whole_,
                  .digit_tiles = scratch_.digit_tiles.data(),
                  .n_rows = n_rows,
                  .gains = scratch_.digit_gains.row(chooser.first),
                  .best = scratch_.estimates.row(chooser.first),
                  .best_stride = scratch_.estimates.stride()});
}

// A chunk that is hidden in part, or that not all queries see, or that is not full.
void Choice::estimate_masked(int idx, std::size_t first, std::size_t n,
                             std::span<const std::uint16_t> planes) {
  const Chunk chunk = context_.chunk(idx);
  const float* bias[kQueriesMax] = {};
  read_chunk_mask(queries_, chunk, first, n, scratch_, bias);
  sign_dots({.signs = {.first_plane = signs_.signs(chunk.stream, chunk.head, idx),
                       .plane_bytes = signs_.plane_bytes(),
                       .planes = planes,
                       .ahead = 0},
             .tables = scratch_.sign_tables.row(first),
             .row_tables = scratch_.sign_tables.stride(),
             .n_rows = static_cast<int>(n),
             .dots = scratch_.products.data()});
  best_of_chunk({.dots = scratch_.products.data(),
                 .scales = signs_.scales(chunk.stream, chunk.head, idx),
                 .n_tokens = chunk.n_tokens,
                 .n_rows = static_cast<int>(n),
                 .gains = scratch_.table_gains.row(first),
                 .bias = bias + first,
                 .slopes = scratch_.slopes.row(first),
                 .best = scratch_.estimates.row(first) + idx,
                 .best_stride = scratch_.estimates.stride()});
}

// A chunk counts by how near it comes to the largest estimate of a query.
void Choice::score(const Chooser& chooser) {
  scores_.assign(static_cast<std::size_t>(n_chunks_), kNothing);
  for (std::size_t q = chooser.first; q < chooser.end; ++q) {
    const float* estimates = scratch_.estimates.row(q);
    float largest = kNothing;
    for (const int chunk : candidates_) largest = std::max(largest, estimates[chunk]);
    if (largest == kNothing) continue;
    for (const int chunk : candidates_) {
      float& score = scores_[static_cast<std::size_t>(chunk)];
      score = std::max(score, estimates[chunk] - largest);
    }
  }
}

// Makes the n best chunks the candidates, among them all that are kept.
void Choice::keep_best(std::int64_t n) {
  const auto others = std::ranges::stable_partition(
      candidates_, [&](int chunk) { return is_kept_[static_cast<std::size_t>(chunk)]; });
  const std::int64_t n_kept = std::ssize(candidates_) - std::ssize(others);
  const std::int64_t n_left = std::clamp<std::int64_t>(n - n_kept, 0, std::ssize(others));
  std::ranges::nth_element(others, others.begin() + n_left, [&](int a, int b) {
    const float score_a = scores_[static_cast<std::size_t>(a)];
    const float score_b = scores_[static_cast<std::size_t>(b)];
    return score_a != score_b ? score_a > score_b : a < b;
  });
  candidates_.resize(static_cast<std::size_t>(n_kept + n_left));
  std::ranges::sort(candidates_);
}

// The first chunk that a query sees, the last two, and those around its own token.
void Choice::keep_always(const Chooser& chooser) {
  is_kept_.assign(static_cast<std::size_t>(n_chunks_), false);
  const auto keep = [&](int chunk) {
    if (chunk >= 0 && chunk < n_chunks_) is_kept_[static_cast<std::size_t>(chunk)] = true;
  };
  for (std::size_t q = chooser.first; q < chooser.end; ++q) {
    int first = 0;
    while (first < n_chunks_ && !sees(q, first)) ++first;
    if (first == n_chunks_) continue;
    int last = n_chunks_ - 1;
    while (!sees(q, last)) --last;
    for (const int chunk : {first, last - 1, last}) keep(chunk);
    if (const int own = queries_[q].own_chunk; own != Query::kUnknown) {
      keep(own - 1);
      keep(own);
    }
  }
}

// Hides all but the candidates.
void Choice::hide_others(const Chooser& chooser) {
  const Visibility* before_last = nullptr;
  for (std::size_t q = chooser.first; q < chooser.end; ++q) {
    const Visibility* before = queries_[q].visibility;
    if (before == before_last) {
      queries_.see_only(q, queries_[q - 1].visibility);  // another head of the same row
      continue;
    }
    before_last = before;
    Visibility* after = scratch_.visibility.row(q);
    std::fill_n(after, n_chunks_, Visibility::kNone);
    for (const int chunk : candidates_) after[chunk] = before[chunk];
    queries_.see_only(q, after);
  }
}

}  // namespace

void choose_chunks(const PieceContext& context, PieceQueries& queries) {
  const CacheSide& keys = context.coded.keys;
  if (keys.cache == nullptr || keys.cache->signs() == nullptr) return;
  Choice(context, queries).choose();
}

}  // namespace slipstream::turbo
