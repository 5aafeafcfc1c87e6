// DraftCosts: what it takes a draft model to guess, measured on this machine.
//
// A round guesses one token for each sequence that wants one. Its time is mostly that of reading
// the weights, so it is counted by rounds, and by how many sequences take part. What was not
// measured for a while is believed less and less: another process may have had the machine.
//
// Threads: thread-compatible. Errors: none. No clock: the caller measures.
#pragma once

#include <cstdint>
#include <map>

namespace slipstream {

class DraftCosts {
 public:
  static constexpr int kDoubtedAfter = 4096;  // steps

  // relative_cost: of a round, in steps of the served model, before it is measured.
  explicit DraftCosts(double relative_cost) : relative_cost_(relative_cost) {}

  // Seconds of so many rounds. step_seconds: what a step of the served model takes.
  [[nodiscard]] double estimate(int n_sequences, int n_rounds, double step_seconds) const;
  // Seconds of a token that is computed and not followed by a guess; less than a round.
  [[nodiscard]] double estimate_learning(double step_seconds) const;

  void observe(int n_sequences, int n_rounds, double seconds);
  void observe_learning(int n_tokens, double seconds);
  void count_step() { ++n_steps_; }

 private:
  struct Measured {
    double seconds = 0;
    std::int64_t at = 0;
  };
  void add(Measured& measured, double seconds, bool is_new) const;
  [[nodiscard]] double believed(const Measured& measured, double guess) const;

  const double relative_cost_;
  std::map<int, Measured> rounds_;  // by number of sequences
  Measured learning_;               // of one token; never if no seconds
  std::int64_t n_steps_ = 0;
};

}  // namespace slipstream
