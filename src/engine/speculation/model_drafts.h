// ModelDrafts: what a draft model guesses for the sequences that generate, what that costs, and
// whom it still has to learn.
//
//   offer = drafts.offer(...);        // before lengths are chosen, of each sequence
//   drafts.learn(...); drafts.make(...);  // once they are
//
// A request for which it was too often wrong does not ask it again: what came meanwhile would have to be
// learned first. Requests that come after a pause do.
//
// A sequence that the draft model has not computed yet is learned a few tokens at a step, for no
// more time than a share of the step. So a long prompt holds nobody up.
//
// Threads: owned by the engine's thread. Errors: none; a request for which the draft model fails
// goes on without it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/speculation/batch_drafter.h"
#include "engine/speculation/draft_costs.h"
#include "engine/speculation/trust.h"

namespace slipstream {

class ModelDrafts {
 public:
  using Clock = std::function<double()>;  // seconds

  // A sequence that is behind by no more is brought up to date by the first round: an n-gram draft
  // may have taken it so far.
  static constexpr int kBehindMax = 32;
  // Of the time of a step without drafts, what learning may take; and tokens where that is not known.
  static constexpr double kLearningShare = 0.25;
  static constexpr int kLearnedMin = 8;
  static constexpr int kLearnedMax = 256;

  ModelDrafts(BatchDrafter& model, Clock clock);

  // What is kept of one request.
  struct OfRequest {
    std::optional<Trust> trust = {};  // once it was asked for this request; before, that of all
    std::vector<Token> tokens = {};   // guessed behind all tokens that the sequence has
    bool has_failed = false;
  };
  struct Offer {
    std::vector<double> chances = {};  // of each token; none if there can be no guess
    int n_missing = 0;                 // tokens that are to be computed before
  };
  [[nodiscard]] Offer offer(const OfRequest& request, SeqId seq, std::span<const Token> tokens,
                            int n_max) const;
  // Seconds that guesses of at most n_rounds tokens take.
  [[nodiscard]] double seconds(int n_sequences, int n_rounds, double step_seconds) const {
    return costs_.estimate(n_sequences, n_rounds, step_seconds);
  }

  struct Wish {
    OfRequest* request;
    SeqId seq;
    std::span<const Token> tokens;
    int n = 0;          // tokens to guess
    int n_missing = 0;  // as offered
  };
  // Once for each step. step_seconds: 0 if it is not known what a step takes.
  void learn(std::span<const Wish> wishes, double step_seconds);
  // Once for each step, too. Sets OfRequest::tokens of each.
  void make(std::span<const Wish> wishes);
  // The request went on by `tokens`.
  void observe(OfRequest& request, std::span<const Token> tokens);
  void release(SeqId seq) { model_.release(seq); }
  // As in batch_drafter.h.
  void observe_batch(SeqId seq, int first, int n, int batch_idx) {
    model_.observe(seq, first, n, batch_idx);
  }
  void catch_up(SeqId seq, std::span<const Token> tokens);

  // Since the start.
  [[nodiscard]] double seconds_spent() const { return seconds_spent_; }
  [[nodiscard]] std::int64_t n_guessed() const { return n_guessed_; }

 private:
  BatchDrafter& model_;
  const Clock clock_;
  DraftCosts costs_;
  Trust all_;  // of all requests together
  double seconds_spent_ = 0;
  std::int64_t n_guessed_ = 0;
};

}  // namespace slipstream
