#include "engine/prefill_control.h"

#include <algorithm>

namespace slipstream {
namespace {

// The first chunk, before anything is known.
constexpr int kTokensAtFirst = 16;
// How much the newest figure counts.
constexpr double kNew = 0.25;

void learn(double& known, double found) {
  known = known == 0 ? found : known + kNew * (found - known);
}

}  // namespace

PrefillControl::PrefillControl(int n_step_tokens_max) : n_step_tokens_max_(n_step_tokens_max) {}

int PrefillControl::n_tokens_max() const {
  if (n_since_probe_ >= kProbeEvery) return 0;
  if (generate_seconds_ == 0 || token_seconds_ == 0)
    return std::min(kTokensAtFirst, n_step_tokens_max_);
  const double n = (kStretch - 1) * generate_seconds_ / token_seconds_;
  // Compared as doubles: the quotient may be beyond any int.
  return static_cast<int>(std::clamp(n,
                                     static_cast<double>(std::min(kTokensMin, n_step_tokens_max_)),
                                     static_cast<double>(n_step_tokens_max_)));
}

void PrefillControl::observe(int n_prompt_tokens, int n_generating, double seconds) {
  if (n_generating == 0) return;  // says nothing about what generating takes
  if (n_prompt_tokens == 0) {
    learn(generate_seconds_, seconds);
    n_since_probe_ = 0;
    return;
  }
  ++n_since_probe_;
  if (generate_seconds_ > 0) {
    // At least a little: a step that was quicker than expected would make the chunk endless.
    const double added = std::max(seconds - generate_seconds_, seconds / 16);
    learn(token_seconds_, added / n_prompt_tokens);
  }
}

}  // namespace slipstream
