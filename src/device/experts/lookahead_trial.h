// LookaheadTrial: finds out whether reading ahead pays, by doing without it now and then.
//
// A round has kSteps steps. One round reads ahead and one does not. The faster way is used for
// kRoundsKept rounds, then both are tried again. The caller measures the time.
//
// Threads: thread-compatible. Errors: none.
#pragma once

namespace slipstream::turbo {

class LookaheadTrial {
 public:
  static constexpr int kSteps = 32;
  static constexpr int kRoundsKept = 8;

  // Whether the next step reads ahead.
  [[nodiscard]] bool looks_ahead() const { return looks_ahead_; }

  void observe(double seconds) {
    seconds_ += seconds;
    if (++n_steps_ < kSteps) return;
    if (round_ == 0) {
      seconds_with_ = seconds_;
      looks_ahead_ = false;
    } else if (round_ == 1) {
      looks_ahead_ = seconds_with_ < seconds_;
    }
    round_ = round_ == kRoundsKept + 1 ? 0 : round_ + 1;
    if (round_ == 0) looks_ahead_ = true;
    n_steps_ = 0;
    seconds_ = 0;
  }

 private:
  bool looks_ahead_ = true;
  int round_ = 0;  // 0: with reading ahead, 1: without, then the faster way
  int n_steps_ = 0;
  double seconds_ = 0;
  double seconds_with_ = 0;
};

}  // namespace slipstream::turbo
