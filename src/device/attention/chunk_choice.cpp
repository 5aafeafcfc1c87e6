#include "device/attention/chunk_choice.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "device/attention/amx.h"
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

// Consecutive queries that choose together.
struct Chooser {
  std::size_t first;
  std::size_t end;
  std::int64_t n_chunks;  // how many they may read
  bool is_limited = false;
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
  [[nodiscard]] bool any_sees(const Chooser& chooser, int chunk) const;
  void find_choosers();
  void prepare_queries();
  void combine_visibility();
  void estimate();
  void estimate_chunk(int idx, std::size_t first, std::size_t n);
  void multiply_on_amx(const std::uint8_t* signs, std::size_t first, std::size_t n);
  void choose_for(const Chooser& chooser);
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
  std::vector<bool> is_limited_;      // by query
  std::vector<Visibility> combined_;  // by chunk
  std::vector<float> scores_;         // by chunk
  std::vector<bool> is_chosen_;       // by chunk
  std::vector<int> others_;
};

Choice::Choice(const PieceContext& context, PieceQueries& queries)
    : context_(context),
      queries_(queries),
      scratch_(context.scratch),
      keys_(context.coded.keys),
      signs_(*keys_.cache->signs()),
      quantised_(keys_.fit() == nullptr ? scratch_.coded : scratch_.rotated),
      // The tile registers are configured for the parts of a key (amx.h).
      with_amx_(use_amx() && keys_.n_parts == 1),
      n_chunks_(context.task.plan->work().mask_chunks().n_chunks()),
      is_limited_(queries.size()) {}

void Choice::choose() {
  find_choosers();
  if (std::ranges::none_of(choosers_, &Chooser::is_limited)) return;
  prepare_queries();
  estimate();
  for (const Chooser& chooser : choosers_) {
    if (chooser.is_limited) choose_for(chooser);
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

bool Choice::any_sees(const Chooser& chooser, int chunk) const {
  for (std::size_t q = chooser.first; q < chooser.end; ++q) {
    if (sees(q, chunk)) return true;
  }
  return false;
}

void Choice::find_choosers() {
  for (std::size_t q = 0; q < queries_.size(); ++q) {
    if (q == 0 || !continues(q)) choosers_.push_back({.first = q, .end = q, .n_chunks = 0});
    choosers_.back().end = q + 1;
  }
  for (Chooser& chooser : choosers_) {
    const bool is_prompt = queries_[chooser.first].row != queries_[chooser.end - 1].row;
    chooser.n_chunks = keys_.cache->shape().attend * (is_prompt ? kPromptFactor : 1) / kChunkTokens;
    std::int64_t n_visible = 0;
    for (int chunk = 0; chunk < n_chunks_; ++chunk) n_visible += any_sees(chooser, chunk) ? 1 : 0;
    chooser.is_limited =
        static_cast<double>(n_visible) > kReadsAllUpTo * static_cast<double>(chooser.n_chunks);
    for (std::size_t q = chooser.first; q < chooser.end; ++q) is_limited_[q] = chooser.is_limited;
  }
}

void Choice::prepare_queries() {
  const AttentionParams params = params_of(context_.task.op);
  const float scale = params.scale * (params.softcap != 0 ? params.softcap : 1);
  const std::size_t n = queries_.size();
  scratch_.sign_tables.resize(n, sign_table_bytes(keys_.head_dim));
  scratch_.table_gains.resize(n);
  scratch_.digit_sums.resize(n);
  scratch_.digit_gains.resize(n);
  scratch_.estimates.resize(n, static_cast<std::size_t>(n_chunks_));
  scratch_.visibility.resize(n, static_cast<std::size_t>(n_chunks_));
  for (std::size_t q = 0; q < n; ++q) {
    const std::span vector(scratch_.vectors.row(q), static_cast<std::size_t>(keys_.head_dim));
    const float peak = queries_[q].is_finite ? peak_of(vector) : 0;
    *scratch_.table_gains.row(q) =
        scale * make_sign_tables(vector, peak, scratch_.sign_tables.row(q));
    if (!with_amx_) continue;
    const std::int8_t* digits = quantised_.digits.row(q);
    *scratch_.digit_sums.row(q) = std::accumulate(digits, digits + keys_.head_dim, 0);
    *scratch_.digit_gains.row(q) = scale * *quantised_.scales.row(q);
  }
}

// What all queries together see of each chunk: kAll if all of them see all of it.
void Choice::combine_visibility() {
  const bool all_limited = std::ranges::all_of(choosers_, &Chooser::is_limited);
  const std::span first(queries_[0].visibility, static_cast<std::size_t>(n_chunks_));
  combined_.assign(first.begin(), first.end());
  for (std::size_t q = 0; q < queries_.size(); ++q) {
    const Visibility* one = queries_[q].visibility;
    if (q > 0 && one == queries_[q - 1].visibility) continue;  // another head of the same row
    for (std::size_t chunk = 0; chunk < combined_.size(); ++chunk) {
      const bool is_same = all_limited && one[chunk] == combined_[chunk];
      combined_[chunk] = is_same ? combined_[chunk] : Visibility::kPartial;
    }
  }
}

void Choice::estimate() {
  const auto reads = [&](std::size_t q, int chunk) { return is_limited_[q] && sees(q, chunk); };
  combine_visibility();
  for (int chunk = 0; chunk < n_chunks_; ++chunk) {
    if (combined_[static_cast<std::size_t>(chunk)] == Visibility::kAll) {
      estimate_chunk(chunk, 0, queries_.size());
      continue;
    }
    for (std::size_t first = 0; first < queries_.size(); ++first) {
      if (!reads(first, chunk)) {
        scratch_.estimates.row(first)[chunk] = kNothing;
        continue;
      }
      std::size_t end = first + 1;
      while (end < queries_.size() && reads(end, chunk)) ++end;
      estimate_chunk(chunk, first, end - first);
      first = end - 1;
    }
  }
}

void Choice::estimate_chunk(int idx, std::size_t first, std::size_t n) {
  const Chunk chunk = context_.chunk(idx);
  const std::uint8_t* signs = signs_.signs(chunk.stream, chunk.head, idx);
  const float* bias[kQueriesMax] = {};
  if (combined_[static_cast<std::size_t>(idx)] != Visibility::kAll) {
    read_chunk_mask(queries_, chunk, first, n, scratch_, bias);
  }
  BestOfChunk best{.dots = scratch_.products.data(),
                   .dot_factor = 1,
                   .digit_sums = nullptr,
                   .scales = signs_.scales(chunk.stream, chunk.head, idx),
                   .n_tokens = chunk.n_tokens,
                   .n_rows = static_cast<int>(n),
                   .gains = scratch_.table_gains.row(first),
                   .bias = bias + first,
                   .slopes = scratch_.slopes.row(first),
                   .best = scratch_.estimates.row(first) + idx,
                   .best_stride = scratch_.estimates.stride()};
  if (with_amx_ && n >= kQueriesForAmx) {
    multiply_on_amx(signs, first, n);
    best.dot_factor = 2;  // bytes are 0 and 1 instead of -1 and 1
    best.digit_sums = scratch_.digit_sums.row(first);
    best.gains = scratch_.digit_gains.row(first);
  } else {
    sign_dots({.signs = signs,
               .head_dim = keys_.head_dim,
               .tables = scratch_.sign_tables.row(first),
               .n_rows = best.n_rows,
               .dots = scratch_.products.data()});
  }
  best_of_chunk(best);
}

void Choice::multiply_on_amx(const std::uint8_t* signs, std::size_t first, std::size_t n) {
  expand_signs(keys_.head_dim, signs, scratch_.key_bytes.data());
  amx_dot_rows({.keys = scratch_.key_bytes.data(),
                .tile_bytes = static_cast<std::size_t>(keys_.head_dim) * kTileTokens,
                .n_tiles = kChunkTiles,
                .n_channels = keys_.head_dim,
                .rows = quantised_.digits.row(first),
                .row_stride = quantised_.digits.stride(),
                .n_rows = static_cast<int>(n),
                .dots = scratch_.products.data()});
}

void Choice::choose_for(const Chooser& chooser) {
  scores_.assign(static_cast<std::size_t>(n_chunks_), kNothing);
  for (std::size_t q = chooser.first; q < chooser.end; ++q) {
    const std::span estimates(scratch_.estimates.row(q), scores_.size());
    const float largest = std::ranges::max(estimates);
    if (largest == kNothing) continue;
    for (std::size_t chunk = 0; chunk < scores_.size(); ++chunk) {
      scores_[chunk] = std::max(scores_[chunk], estimates[chunk] - largest);
    }
  }
  is_chosen_.assign(scores_.size(), false);
  keep_always(chooser);
  others_.clear();
  std::int64_t n_left = chooser.n_chunks;
  for (int chunk = 0; chunk < n_chunks_; ++chunk) {
    const auto i = static_cast<std::size_t>(chunk);
    if (is_chosen_[i]) {
      --n_left;
    } else if (scores_[i] > kNothing) {
      others_.push_back(chunk);
    }
  }
  n_left = std::clamp<std::int64_t>(n_left, 0, std::ssize(others_));
  if (n_left < std::ssize(others_)) {
    std::ranges::nth_element(others_, others_.begin() + n_left, [&](int a, int b) {
      const float score_a = scores_[static_cast<std::size_t>(a)];
      const float score_b = scores_[static_cast<std::size_t>(b)];
      return score_a != score_b ? score_a > score_b : a < b;
    });
    others_.resize(static_cast<std::size_t>(n_left));
  }
  for (const int chunk : others_) is_chosen_[static_cast<std::size_t>(chunk)] = true;
  hide_others(chooser);
}

// The first chunk that a query sees, the last two, and those around its own token.
void Choice::keep_always(const Chooser& chooser) {
  const auto keep = [&](int chunk) {
    if (chunk >= 0 && chunk < n_chunks_) is_chosen_[static_cast<std::size_t>(chunk)] = true;
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
    for (std::size_t chunk = 0; chunk < is_chosen_.size(); ++chunk) {
      after[chunk] = is_chosen_[chunk] ? before[chunk] : Visibility::kNone;
    }
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
