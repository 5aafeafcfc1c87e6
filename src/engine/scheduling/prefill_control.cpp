#include "engine/scheduling/prefill_control.h"

#include <algorithm>

namespace slipstream {
namespace {

// The first chunk, before anything is measured.
constexpr double kTokensAtFirst = 16;
// Weight of the newest measurement.
constexpr double kNew = 0.25;
// How a chunk changes after a step: quickly down, slowly up, and not at all near the goal.
constexpr double kShrinkMost = 0.5;
constexpr double kGrow = 1.0 / 16;
constexpr double kNearGoal = 0.9;

}  // namespace

PrefillControl::PrefillControl(int n_step_tokens_max)
    : n_step_tokens_max_(n_step_tokens_max),
      n_tokens_(std::min<double>(kTokensAtFirst, n_step_tokens_max)) {}

int PrefillControl::n_tokens_max() const {
  return n_since_probe_ >= kProbeEvery ? 0 : static_cast<int>(n_tokens_);
}

void PrefillControl::observe(int n_prompt_tokens, int n_generating, double seconds) {
  if (n_generating == 0) return;  // says nothing about the time to generate
  if (n_prompt_tokens == 0) {
    generate_seconds_ += (generate_seconds_ == 0 ? 1 : kNew) * (seconds - generate_seconds_);
    n_since_probe_ = 0;
    return;
  }
  ++n_since_probe_;
  if (generate_seconds_ == 0) return;
  const double goal = kStretch * generate_seconds_;
  const bool was_full = n_prompt_tokens >= static_cast<int>(n_tokens_);
  if (seconds > goal) {
    n_tokens_ *= std::max(goal / seconds, kShrinkMost);
  } else if (seconds < kNearGoal * goal && was_full) {
    n_tokens_ += std::max(kGrow * n_tokens_, 0.5);
  }
  const int least = std::min(kTokensMin, n_step_tokens_max_);
  n_tokens_ = std::clamp<double>(n_tokens_, least, n_step_tokens_max_);
}

}  // namespace slipstream
