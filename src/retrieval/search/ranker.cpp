#include "retrieval/search/ranker.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace slipstream {
namespace {

// Measured on questions about code and on Cranfield (docs/search.md).
constexpr double kLengthMatters = 0.75;  // BM25's b
constexpr double kUsualTerms = 250;      // of a chunk
constexpr double kPathCounts = 4;
constexpr double kNearness = 0.5;     // of two terms, beside their own weight
constexpr double kNearTerms = 6;      // that far apart they are not near
constexpr double kDefinition = 0.35;  // of the score

struct Seen {
  double count = 0;
  bool is_in_text = false;
  std::int64_t last = std::numeric_limits<std::int64_t>::min() / 2;  // where it stood last
};

// Terms of the query by text: there are few, and a chunk has hundreds of words.
std::size_t find(std::span<const WeightedTerm> terms, std::string_view text) {
  const auto found = std::ranges::find(terms, text, &WeightedTerm::text);
  return static_cast<std::size_t>(found - terms.begin());
}

}  // namespace

Rank rank(const RankedText& chunk, std::span<const WeightedTerm> terms, Words& words) {
  std::vector<Seen> seen(terms.size());
  Words::FirstBytes wanted;
  for (const WeightedTerm& term : terms) wanted.set(static_cast<unsigned char>(term.text.front()));
  const auto count = [&](std::string_view text, double counts) {
    words.cut(text, wanted, [&](const Term& term) {
      const std::size_t i = find(terms, term.text);
      if (i < seen.size()) seen[i].count += counts;
      return true;
    });
  };
  count(chunk.names, kNameCounts);
  count(chunk.path, kPathCounts);

  // How near the terms come to each other: the best for each term with the one before it.
  std::vector<double> nearest(terms.size(), kNearTerms);
  std::int64_t n_terms = 0;
  words.cut(chunk.text, wanted, [&](const Term& term) {
    ++n_terms;
    if (term.text.empty()) return true;
    const std::size_t i = find(terms, term.text);
    if (i >= seen.size()) return true;
    seen[i].count += 1;
    seen[i].is_in_text = true;
    for (std::size_t other = 0; other < seen.size(); ++other) {
      if (other == i || !seen[other].is_in_text) continue;
      const auto distance = static_cast<double>(n_terms - seen[other].last);
      nearest[i] = std::min(nearest[i], distance);
      nearest[other] = std::min(nearest[other], distance);
    }
    seen[i].last = n_terms;
    return true;
  });

  Rank result;
  double all = 0;
  double found = 0;
  const double length =
      1 - kLengthMatters + kLengthMatters * static_cast<double>(n_terms) / kUsualTerms;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    all += terms[i].weight;
    if (seen[i].count <= 0) continue;
    found += terms[i].weight;
    result.terms.push_back(i);
    result.score += terms[i].weight * seen[i].count * (kSaturation + 1) /
                    (seen[i].count + kSaturation * length);
    result.score += terms[i].weight * kNearness * (1 - nearest[i] / kNearTerms);
  }
  result.has_pair = std::ranges::any_of(nearest, [](double distance) { return distance <= 1; });
  result.share = all > 0 ? found / all : 0;
  if (chunk.defines_name) result.score *= 1 + kDefinition;
  return result;
}

}  // namespace slipstream
