// StepCosts: what a step takes with drafted tokens in it, measured on this machine with this model,
// by how many sequences generate and how much context they have. Nothing is assumed about matrix
// units, threads or disks: what experts cost that only a draft needs, for example, is part of it.
//
// Other processes make steps longer, never shorter, so a shorter time counts more than a longer one,
// and a time that is surprisingly long counts only when it was measured twice. A step without drafts
// takes no longer than one with them: where its first one seems to, it is measured again.
// What was not measured for a while is doubted more and more, and measured again when it could pay;
// each time after a longer pause. Longer drafts are tried one after the other (turn()), so that the
// first look at a machine on which they are dear costs little.
//
// Threads: thread-compatible. Errors: none. No clock: the caller measures.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>

namespace slipstream {

class StepCosts {
 public:
  // Numbers of drafted tokens in a step that are told apart.
  static constexpr std::array<int, 16> kLengths = {0,  1,  2,  3,  4,  6,  8,   12,
                                                   16, 24, 32, 48, 64, 96, 128, 256};
  static constexpr int kDoubtedAfter = 64;        // steps
  static constexpr int kDoubtedAfterMost = 4096;  // likewise

  // A step in which so many sequences generate, with so many tokens of context together.
  struct Kind {
    int n_sequences;
    std::int64_t n_context;
  };

  // Whether a step without drafts is to be measured first.
  [[nodiscard]] bool wants_plain(Kind kind) const;
  // How many times as long as without drafts a step takes. Where this is not known, it is a guess
  // that leads to a measurement if the draft is likely to be right. patience: by how much later than
  // usual a measurement is doubted, for who has to pay for another. REQUIRES: !wants_plain(kind).
  [[nodiscard]] double relative(Kind kind, int n_drafted, int patience = 1) const;
  // The longest draft that may be tried now, at most n_drafted: no more than one step of kLengths
  // beyond what is known. REQUIRES: !wants_plain(kind).
  [[nodiscard]] int turn(Kind kind, int n_drafted) const;
  // Whether a step with so many drafted tokens was measured lately. REQUIRES: !wants_plain(kind).
  [[nodiscard]] bool is_known(Kind kind, int n_drafted) const;
  // Of a step without drafts. REQUIRES: !wants_plain(kind).
  [[nodiscard]] double plain_seconds(Kind kind) const;
  void observe(Kind kind, int n_drafted, double seconds);

 private:
  struct Cost {
    double seconds = 0;
    double surprise = 0;           // what the last step took, if that is hard to believe
    bool is_confirmed = false;     // measured more than once
    bool is_doubted = false;       // measured once, and contradicted
    std::int64_t measured_at = 0;  // step; 0: never
    int doubted_after = kDoubtedAfter;
  };
  using Costs = std::array<Cost, kLengths.size()>;

  [[nodiscard]] static std::pair<int, int> key_of(Kind kind);
  [[nodiscard]] bool is_surprising(const Costs& costs, std::size_t i, int n_sequences,
                                   double seconds) const;
  [[nodiscard]] static std::size_t class_of(int n_drafted);
  [[nodiscard]] const Costs& costs_of(Kind kind) const;
  [[nodiscard]] double age(const Cost& cost) const;
  [[nodiscard]] bool is_known(const Cost& cost, int patience = 1) const;
  [[nodiscard]] double estimate(const Costs& costs, std::size_t i, int n_sequences,
                                int patience) const;

  std::map<std::pair<int, int>, Costs> costs_;
  std::int64_t n_steps_ = 0;
};

}  // namespace slipstream
