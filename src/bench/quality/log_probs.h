// CompactLogProbs: a model's log-probabilities of all tokens at one position, two bytes each, in
// the form of llama-perplexity's --kl-divergence-base files.
//
//   f32 step | f32 lowest | u16 code[n_vocab]      log p = lowest + step * code
//
// Values more than 16 below the highest logit are stored as the lowest: they do not count in a
// divergence. A step is at most 16/65535, so that a log-probability is off by at most 0.00012.
//
// Threads: pure functions. Errors: kCorrupt for non-finite logits (engine/sampling/logprobs.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace slipstream::quality {

// The number of codes in a row, including those that hold step and lowest.
constexpr std::size_t row_codes(std::size_t n_vocab) { return n_vocab + 4; }

[[nodiscard]] Result<void> encode_log_probs(std::span<const float> logits,
                                            std::span<std::uint16_t> row);

class LogProbsView {
 public:
  explicit LogProbsView(std::span<const std::uint16_t> row);
  [[nodiscard]] float operator[](std::size_t token) const {
    return lowest_ + step_ * static_cast<float>(codes_[token]);
  }
  [[nodiscard]] std::size_t size() const { return codes_.size(); }

 private:
  float step_;
  float lowest_;
  std::span<const std::uint16_t> codes_;
};

}  // namespace slipstream::quality
