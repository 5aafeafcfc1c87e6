// PrefillControl: how many prompt tokens may go into a step in which other sequences generate.
//
// Users of a stream notice the time between two tokens, which is the time of a step. So the chunk
// is chosen by time: a step with prompts takes about kStretch times as long as one without. This
// needs no model of the machine: the chunk shrinks after a step that took too long and grows after
// one that did not. (Time is not linear in tokens: matrix units round up, and each chunk reads all
// cells of a long prompt again.) Every kProbeEvery-th step beside a waiting prompt runs without it,
// to keep the measured time of such steps up to date.
//
// Threads: thread-compatible. Errors: none. No clock: the caller measures.
#pragma once

namespace slipstream {

class PrefillControl {
 public:
  // Factor on the time between tokens. The promise is 3 at the 99th percentile, relative to the
  // time before the prompt came; noise and the growing cache need the margin.
  static constexpr double kStretch = 1.75;
  static constexpr int kProbeEvery = 32;
  static constexpr int kTokensMin = 2;  // however slow the machine: every prompt must end

  explicit PrefillControl(int n_step_tokens_max);

  // Limit for the next step if other sequences generate in it.
  [[nodiscard]] int n_tokens_max() const;
  // Reports how long a step took, with its prompt tokens and generating sequences.
  void observe(int n_prompt_tokens, int n_generating, double seconds);

 private:
  int n_step_tokens_max_;
  double generate_seconds_ = 0;  // of a step without prompts; 0: not known yet
  double n_tokens_;
  int n_since_probe_ = 0;
};

}  // namespace slipstream
