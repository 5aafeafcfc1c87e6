#include "tri_score.h"

#include <cmath>
#include <complex>
#include <cstdint>

namespace slipstream::evictions {
namespace {

using Complex = std::complex<double>;

constexpr std::uint32_t kFarthest = 1U << 16U;

// By pair of channels: the mean of e^(i w d) over the distances after the text's end.
std::vector<Complex> mean_turns(const std::vector<double>& speeds) {
  std::vector<Complex> means;
  for (const double speed : speeds) {
    Complex sum = 0;
    int n = 0;
    for (std::uint32_t distance = 1; distance <= kFarthest; distance *= 2, ++n) {
      sum += std::polar(1.0, speed * distance);
    }
    means.push_back(sum / static_cast<double>(n));
  }
  return means;
}

class Scorer {
 public:
  explicit Scorer(const AttentionRecord& record)
      : record_(record), n_pairs_(record.shape.n_channels / 2) {
    for (std::size_t pair = 0; pair < n_pairs_; ++pair) {
      speeds_.push_back(std::pow(record.shape.rope_base,
                                 -static_cast<double>(pair) / static_cast<double>(n_pairs_)));
    }
    mean_turns_ = mean_turns(speeds_);
  }

  // How the keys of a cell have turned by the end of the text, and in the mean after it.
  [[nodiscard]] std::vector<Complex> turns_of(std::size_t cell) const {
    const auto distance = static_cast<double>(record_.n_cells - cell);
    std::vector<Complex> turns;
    for (std::size_t pair = 0; pair < n_pairs_; ++pair) {
      turns.push_back(mean_turns_[pair] * std::polar(1.0, speeds_[pair] * distance));
    }
    return turns;
  }

  [[nodiscard]] double score(std::size_t layer, std::size_t head, std::size_t cell,
                             const std::vector<Complex>& turns) const {
    const AttentionShape& shape = record_.shape;
    const std::span<const float> key =
        record_.key(layer, head * shape.n_kv_heads / shape.n_heads, cell);
    const std::size_t at = layer * shape.n_heads + head;
    const double* sums = &record_.query_sums[at * shape.n_channels];
    const double* lengths = &record_.query_lengths[at * n_pairs_];
    const auto n_queries = static_cast<double>(record_.n_cells);
    double score = 0;
    for (std::size_t pair = 0; pair < n_pairs_; ++pair) {
      const Complex q = Complex(sums[pair], sums[pair + n_pairs_]) / n_queries;
      const Complex k(key[pair], key[pair + n_pairs_]);
      score += (q * std::conj(k) * turns[pair]).real() +
               (lengths[pair] / n_queries - std::abs(q)) * std::abs(k);
    }
    return score;
  }

 private:
  const AttentionRecord& record_;
  const std::size_t n_pairs_;
  std::vector<double> speeds_;
  std::vector<Complex> mean_turns_;
};

void normalise(std::vector<float>& scores) {
  double sum = 0;
  double squares = 0;
  for (const double score : scores) {
    sum += score;
    squares += score * score;
  }
  const auto n = static_cast<double>(scores.size());
  const double mean = sum / n;
  const double deviation = std::sqrt(std::max(squares / n - mean * mean, 1e-12));
  for (float& score : scores) score = static_cast<float>((score - mean) / deviation);
}

}  // namespace

double tri_score(const AttentionRecord& record, std::size_t layer, std::size_t head,
                 std::size_t cell) {
  const Scorer scorer(record);
  return scorer.score(layer, head, cell, scorer.turns_of(cell));
}

std::vector<std::vector<float>> tri_scores(const AttentionRecord& record) {
  const Scorer scorer(record);
  const std::size_t n_heads = record.shape.n_heads;
  std::vector<std::vector<float>> scores(record.shape.n_layers * n_heads,
                                         std::vector<float>(record.n_cells));
  for (std::size_t cell = 0; cell < record.n_cells; ++cell) {
    const std::vector<Complex> turns = scorer.turns_of(cell);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      scores[i][cell] = static_cast<float>(scorer.score(i / n_heads, i % n_heads, cell, turns));
    }
  }
  for (std::vector<float>& row : scores) normalise(row);
  return scores;
}

}  // namespace slipstream::evictions
