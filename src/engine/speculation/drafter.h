// Drafter: guesses how a sequence goes on. The model computes the guessed tokens together with the
// pending one, and the request's own sampler decides how many of them were right.
//
// Threads: owned by the engine's thread. Errors: none; without a guess the draft is empty.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/request.h"

namespace slipstream {

struct Draft {
  std::vector<Token> tokens = {};
  // How many tokens before the draft are the same as where it was found. The more there are, the more
  // often a draft is right.
  int n_matched = 0;
};

class Drafter {
 public:
  Drafter() = default;
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;
  virtual ~Drafter() = default;

  // At most n_max tokens that may follow these. REQUIRES: the tokens begin with those of the last
  // call.
  [[nodiscard]] virtual Draft propose(std::span<const Token> tokens, int n_max) = 0;
  [[nodiscard]] virtual std::size_t n_bytes() const = 0;
};

}  // namespace slipstream
