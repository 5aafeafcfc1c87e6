// TokenPieces: the bytes of every token of a vocabulary, and the tokens sorted by their bytes.
// Tokens with a common start are adjacent, so that a grammar that rejects a start rejects all of
// them at once.
//
// Threads: immutable.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"

namespace slipstream {

class TokenPieces {
 public:
  // pieces[token] is empty for tokens without text. `ends` are the tokens that end an answer; their
  // text does not matter.
  TokenPieces(std::vector<std::string> pieces, std::vector<Token> ends);

  [[nodiscard]] std::size_t n_tokens() const { return pieces_.size(); }
  [[nodiscard]] std::string_view piece(Token token) const {
    return pieces_[static_cast<std::size_t>(token)];
  }
  [[nodiscard]] bool is_end(Token token) const;
  [[nodiscard]] std::span<const Token> ends() const { return ends_; }
  // Tokens with text that do not end an answer.
  [[nodiscard]] std::span<const Token> sorted() const { return sorted_; }

 private:
  std::vector<std::string> pieces_;
  std::vector<Token> ends_;  // in ascending order
  std::vector<Token> sorted_;
};

}  // namespace slipstream
