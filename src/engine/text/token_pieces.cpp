#include "engine/text/token_pieces.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace slipstream {

TokenPieces::TokenPieces(std::vector<std::string> pieces, std::vector<Token> ends)
    : pieces_(std::move(pieces)), ends_(std::move(ends)) {
  std::ranges::sort(ends_);
  SLIP_CHECK(ends_.empty() || (ends_.front() >= 0 && std::cmp_less(ends_.back(), pieces_.size())),
             "a token that ends answers is not in the vocabulary");
  sorted_.reserve(pieces_.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const auto token = static_cast<Token>(i);
    if (!pieces_[i].empty() && !is_end(token)) sorted_.push_back(token);
  }
  std::ranges::sort(sorted_, {}, [this](Token token) { return piece(token); });
}

bool TokenPieces::is_end(Token token) const { return std::ranges::binary_search(ends_, token); }

}  // namespace slipstream
