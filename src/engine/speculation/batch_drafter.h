// BatchDrafter: guesses how several sequences go on, all in one batch. Unlike a Drafter it takes
// time, so it is told how many tokens are wanted before it begins.
//
// It keeps what it has computed of each sequence until release(), in memory that may be full.
//
// Threads: owned by the engine's thread. Errors: draft() and learn() say false if nothing was
// computed; the sequences concerned are then released.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/request.h"

namespace slipstream {

class BatchDrafter {
 public:
  struct Wish {
    SeqId seq;
    std::span<const Token> tokens;  // of the sequence; at least one
    int n = 0;                      // tokens to guess
    std::vector<Token> draft = {};  // they are
  };

  BatchDrafter() = default;
  BatchDrafter(const BatchDrafter&) = delete;
  BatchDrafter& operator=(const BatchDrafter&) = delete;
  virtual ~BatchDrafter() = default;

  // How many of these tokens are to be computed before a guess; at least one, the last. Nothing if
  // the sequence is too long for it now.
  [[nodiscard]] virtual std::optional<int> n_missing(SeqId seq,
                                                     std::span<const Token> tokens) const = 0;
  // Computes the first n of those that are missing. REQUIRES: n is less than n_missing().
  [[nodiscard]] virtual bool learn(SeqId seq, std::span<const Token> tokens, int n) = 0;
  // Computes what is missing, and guesses. REQUIRES: none is too long, and no sequence comes twice.
  [[nodiscard]] virtual bool draft(std::span<Wish> wishes) = 0;
  virtual void release(SeqId seq) = 0;
  // Forgets all sequences.
  virtual void clear() = 0;

  // The model has computed n tokens of a sequence, from position `first` on, in its last batch from
  // batch_idx on. Some may be drafted ones that will be refused.
  virtual void observe(SeqId /*seq*/, int /*first*/, int /*n*/, int /*batch_idx*/) {}
  // The sequence has these tokens now. For drafters that read what they have observed.
  virtual void catch_up(SeqId /*seq*/, std::span<const Token> /*tokens*/) {}

  // What a guess of one token takes before this is measured, in steps of the model that is served.
  [[nodiscard]] virtual double relative_cost() const = 0;

  // To measure and to test: which token is guessed instead of the one that the drafter says, behind
  // these tokens and these guesses.
  using Say = std::function<Token(std::span<const Token> tokens, std::span<const Token> guessed,
                                  Token said)>;
  void set_say(Say say) { say_ = std::move(say); }

 protected:
  [[nodiscard]] Token said(const Wish& wish, Token best) const {
    return say_ ? say_(wish.tokens, wish.draft, best) : best;
  }

 private:
  Say say_;
};

}  // namespace slipstream
