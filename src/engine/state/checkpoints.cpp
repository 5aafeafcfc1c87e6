#include "engine/state/checkpoints.h"

#include <algorithm>
#include <bit>
#include <ranges>
#include <utility>

#include "base/check.h"

namespace slipstream {
namespace {

// Extends the hash of a prefix by one value, so that one pass hashes all prefixes of a prompt.
// Mixes like SplitMix64.
std::uint64_t extend(std::uint64_t hash, std::uint64_t value) {
  hash += 0x9e3779b97f4a7c15U + value;
  hash = (hash ^ (hash >> 30U)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27U)) * 0x94d049bb133111ebU;
  return hash ^ (hash >> 31U);
}

std::uint64_t extend(std::uint64_t hash, Token token) {
  return extend(hash, static_cast<std::uint64_t>(token));
}

std::uint64_t hash_of(Salt salt, std::span<const Token> tokens) {
  std::uint64_t hash = extend(0, salt);
  for (const Token token : tokens) hash = extend(hash, token);
  return hash;
}

}  // namespace

int next_checkpoint(int n_computed, int n_prompt) {
  constexpr unsigned kFirst = 256;  // fewer tokens are computed fast enough
  constexpr int kParts = 8;
  const int n_last = n_prompt - 1;
  if (n_computed >= n_last) return n_last;
  const unsigned part = std::max(kFirst, std::bit_ceil(static_cast<unsigned>(n_last / kParts)));
  const auto n = static_cast<unsigned>(n_computed);
  const unsigned next_power = std::max(kFirst, std::bit_ceil(n + 1));
  const unsigned next = std::min(next_power, (n / part + 1) * part);
  return std::min(static_cast<int>(next), n_last);
}

void Checkpoints::insert(Salt salt, std::span<const Token> tokens, std::vector<std::byte> state) {
  SLIP_CHECK(!tokens.empty(), "a state after nothing");
  const std::uint64_t hash = hash_of(salt, tokens);
  if (const auto earlier = entries_.find(hash); earlier != entries_.end()) erase(earlier);

  Entry entry{.salt = salt,
              .tokens = {tokens.begin(), tokens.end()},
              .state = std::move(state),
              .last_used = ++tick_};
  if (entry.n_bytes() > bytes_max_) return;
  while (n_bytes_ + entry.n_bytes() > bytes_max_) {
    erase(std::ranges::min_element(entries_, {}, [](const auto& e) { return e.second.last_used; }));
  }
  n_bytes_ += entry.n_bytes();
  entries_.emplace(hash, std::move(entry));
}

Checkpoints::Match Checkpoints::match(Salt salt, std::span<const Token> tokens) {
  std::vector<std::pair<std::size_t, Entry*>> found;  // number of tokens and entry
  std::uint64_t hash = extend(0, salt);
  for (const auto& [i, token] : tokens | std::views::enumerate) {
    hash = extend(hash, token);
    if (const auto entry = entries_.find(hash); entry != entries_.end()) {
      found.emplace_back(static_cast<std::size_t>(i) + 1, &entry->second);
    }
  }
  // Hashes may collide: compare, so that no other tenant's or prompt's state is used.
  for (const auto& [n_tokens, entry] : found | std::views::reverse) {
    if (!entry->is_of(salt, tokens.first(n_tokens))) continue;
    entry->last_used = ++tick_;
    return {.n_tokens = static_cast<int>(n_tokens), .state = entry->state};
  }
  return {};
}

void Checkpoints::erase(Salt salt, std::span<const Token> tokens) {
  const auto entry = entries_.find(hash_of(salt, tokens));
  if (entry != entries_.end() && entry->second.is_of(salt, tokens)) erase(entry);
}

void Checkpoints::erase(Entries::iterator entry) {
  n_bytes_ -= entry->second.n_bytes();
  entries_.erase(entry);
}

std::size_t Checkpoints::Entry::n_bytes() const {
  return state.size() + tokens.size() * sizeof(Token);
}

bool Checkpoints::Entry::is_of(Salt of_salt, std::span<const Token> of_tokens) const {
  return salt == of_salt && std::ranges::equal(tokens, of_tokens);
}

}  // namespace slipstream
