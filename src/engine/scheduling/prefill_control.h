// PrefillControl: how many tokens of prompts may go into a step in which others generate.
//
// What a user of a stream feels is the time between two tokens, which is the time of a step. So the
// chunk is chosen by time: a step with prompts in it takes about kStretch times one without. No
// model of the machine is needed: the chunk shrinks after a step that took too long and grows after
// one that did not. (Time is no line over tokens: matrix units round up, and each chunk reads all
// of a long prompt's cells again.) Every kProbeEvery-th step beside a waiting prompt runs without
// it, or what is known of such steps would go out of date.
//
// Threads: thread-compatible. Errors: none. No clock: the caller measures.
#pragma once

namespace slipstream {

class PrefillControl {
 public:
  // Of the time between tokens. 3 is what we promise at the 99th percentile, of the time before the
  // prompt came; noise and the growing cache need the rest.
  static constexpr double kStretch = 1.75;
  static constexpr int kProbeEvery = 32;
  static constexpr int kTokensMin = 2;  // however slow: a prompt has to end

  explicit PrefillControl(int n_step_tokens_max);

  // For the next step, if others generate in it.
  [[nodiscard]] int n_tokens_max() const;
  // What a step took, with so many tokens of prompts in it and so many sequences that generated.
  void observe(int n_prompt_tokens, int n_generating, double seconds);

 private:
  int n_step_tokens_max_;
  double generate_seconds_ = 0;  // of a step without prompts; 0: not known yet
  double n_tokens_;
  int n_since_probe_ = 0;
};

}  // namespace slipstream
