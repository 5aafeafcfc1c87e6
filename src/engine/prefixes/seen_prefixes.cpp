#include "engine/prefixes/seen_prefixes.h"

#include <utility>

namespace slipstream {
namespace {

// SplitMix64's finaliser (Vigna): every bit of the input changes half of the output's.
std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// Calls with the hash of each whole block, until it returns false.
template <typename Visit>
void for_each_block(Salt salt, std::span<const Token> tokens, Visit visit) {
  std::uint64_t hash = mix_bits(salt);
  for (; tokens.size() >= SeenPrefixes::kBlock; tokens = tokens.subspan(SeenPrefixes::kBlock)) {
    for (const Token token : tokens.first(SeenPrefixes::kBlock)) {
      hash = mix_bits(hash ^ static_cast<std::uint32_t>(token));
    }
    if (!visit(hash)) return;
  }
}

}  // namespace

int SeenPrefixes::find(Salt salt, std::span<const Token> tokens) const {
  std::size_t n_blocks = 0;
  for_each_block(salt, tokens, [&](std::uint64_t hash) {
    const bool is_seen = contains(hash);
    n_blocks += is_seen ? 1 : 0;
    return is_seen;
  });
  return static_cast<int>(n_blocks * kBlock);
}

void SeenPrefixes::remember(Salt salt, std::span<const Token> tokens) {
  for_each_block(salt, tokens, [this](std::uint64_t hash) {
    young_.insert(hash);
    if (young_.size() >= n_young_max_) old_ = std::exchange(young_, {});
    return true;
  });
}

}  // namespace slipstream
