#include "policy.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <span>

#include "base/check.h"
#include "tri_score.h"

namespace slipstream::evictions {
namespace {

using Scores = std::vector<float>;  // of a head's cells

constexpr std::size_t kNeighbours = 7;

Scores largest_of_neighbours(const Scores& scores) {
  Scores largest(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::size_t begin = i - std::min(i, kNeighbours / 2);
    const std::size_t end = std::min(scores.size(), i + kNeighbours / 2 + 1);
    largest[i] = *std::max_element(scores.begin() + static_cast<std::ptrdiff_t>(begin),
                                   scores.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return largest;
}

Scores sum_of_heads(const std::vector<float>& of, const AttentionRecord& record, std::size_t first,
                    std::size_t n) {
  Scores sum(record.n_cells);
  for (std::size_t i = first * record.n_cells; i < (first + n) * record.n_cells; ++i) {
    sum[i % record.n_cells] += of[i];
  }
  return sum;
}

// What the attention of a group of query heads says of the cells: of the heads of a KV head, or of all.
Scores by_attention(Policy policy, const AttentionRecord& record, std::size_t first,
                    std::size_t n) {
  if (policy == Policy::kMass) return sum_of_heads(record.mass, record, first, n);
  return largest_of_neighbours(sum_of_heads(record.window, record, first, n));
}

// The scores of each group of query heads that keeps cells together.
std::vector<Scores> scores_of(Policy policy, Unit unit, const AttentionRecord& record,
                              unsigned seed) {
  const std::size_t n_heads = record.shape.n_layers * record.shape.n_heads;
  const std::size_t n_groups = unit == Unit::kCell ? 1 : record.shape.n_keeping();
  const std::size_t n_of_group = n_heads / n_groups;
  const std::vector<Scores> tri =
      policy == Policy::kTri ? tri_scores(record) : std::vector<Scores>();
  std::mt19937 random(seed);  // used without distributions, which differ between libraries
  std::vector<Scores> groups;
  for (std::size_t group = 0; group < n_groups; ++group) {
    const std::size_t first = group * n_of_group;
    if (policy == Policy::kMass || policy == Policy::kWindow) {
      groups.push_back(by_attention(policy, record, first, n_of_group));
      continue;
    }
    Scores scores(record.n_cells);  // of recency: all the same
    if (policy == Policy::kRandom) {
      for (float& score : scores) score = static_cast<float>(random() % (1U << 24U));
    } else if (policy == Policy::kTri) {
      scores = tri[first];
      for (std::size_t head = first + 1; head < first + n_of_group; ++head) {
        std::ranges::transform(scores, tri[head], scores.begin(),
                               [](float a, float b) { return std::max(a, b); });
      }
    }
    groups.push_back(std::move(scores));
  }
  return groups;
}

std::vector<bool> best_cells(const Scores& scores, std::size_t n_kept, std::size_t n_last) {
  const std::size_t n = scores.size();
  std::vector<bool> is_kept(n);
  std::fill_n(is_kept.begin(), kSinkTokens, true);
  std::fill_n(is_kept.rbegin(), n_last, true);
  std::vector<std::size_t> others(n - kSinkTokens - n_last);
  std::iota(others.begin(), others.end(), kSinkTokens);
  const std::size_t n_chosen = n_kept - kSinkTokens - n_last;
  std::ranges::stable_sort(others, [&](std::size_t a, std::size_t b) {  // of equals the later one
    return scores[a] != scores[b] ? scores[a] > scores[b] : a > b;
  });
  for (const std::size_t cell : std::span(others).first(n_chosen)) is_kept[cell] = true;
  return is_kept;
}

}  // namespace

std::optional<Policy> policy_of(std::string_view name) {
  const auto* const at = std::ranges::find(kPolicyNames, name);
  if (at == kPolicyNames.end()) return std::nullopt;
  return static_cast<Policy>(at - kPolicyNames.begin());
}

std::string_view name_of(Policy policy) { return kPolicyNames[static_cast<std::size_t>(policy)]; }

Kept keep(Policy policy, Unit unit, const AttentionRecord& record, std::size_t n_kept,
          unsigned seed) {
  SLIP_CHECK(n_kept >= kKeptMin && n_kept <= record.n_cells, "no such budget");
  const std::size_t n_last = policy == Policy::kMass ? n_kept / 2 : kLastTokens;
  Kept kept;
  for (const Scores& scores : scores_of(policy, unit, record, seed)) {
    kept.push_back(best_cells(scores, n_kept, n_last));
  }
  if (unit == Unit::kCell) kept.resize(record.shape.n_keeping(), std::vector<bool>(kept.front()));
  return kept;
}

}  // namespace slipstream::evictions
