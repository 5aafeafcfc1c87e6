// SeenPrefixes: remembers which beginnings of token sequences were computed before, after the cache
// has forgotten them. So it can be told which tokens of a prompt are computed a second time.
//
// It holds hashes of blocks. Each hash depends on the salt and on all tokens before the block, so
// tenants learn nothing of each other. Blocks that were not met for the longest time are forgotten.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>

#include "engine/request.h"

namespace slipstream {

class SeenPrefixes {
 public:
  static constexpr std::size_t kBlock = 16;  // tokens
  // Of a million tokens. Together they take 3 MB.
  static constexpr std::size_t kBlocksMax = std::size_t{1} << 16;

  explicit SeenPrefixes(std::size_t n_blocks_max = kBlocksMax) : n_young_max_(n_blocks_max / 2) {}

  // How many of the first tokens were remembered, in whole blocks.
  [[nodiscard]] int find(Salt salt, std::span<const Token> tokens) const;
  void remember(Salt salt, std::span<const Token> tokens);

 private:
  [[nodiscard]] bool contains(std::uint64_t hash) const {
    return young_.contains(hash) || old_.contains(hash);
  }

  // Blocks that are met become young. When there are too many, the young ones become the old ones,
  // and those that were old are forgotten.
  const std::size_t n_young_max_;
  std::unordered_set<std::uint64_t> young_;
  std::unordered_set<std::uint64_t> old_;
};

}  // namespace slipstream
