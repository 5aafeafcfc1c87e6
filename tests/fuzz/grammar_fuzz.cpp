// Whatever a client sends as a grammar, it is refused or followed within the limits, and both ways
// to ask about a token agree. Input: the answer's bytes, a line feed, the grammar.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "engine/sampling/grammar_matcher.h"
#include "harness.h"

namespace {

using slipstream::Token;

constexpr Token kEnd = 0;
constexpr int kFirstByte = 1;

// Token 0 ends an answer, then each byte, then some pairs.
slipstream::TokenPieces make_pieces() {
  std::vector<std::string> pieces = {""};
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  for (const char* pair : {"ab", "aa", "aaaaaaaa", "\": ", "\xC3\xA9", "\x9F\x98", "{\""}) {
    pieces.emplace_back(pair);
  }
  return {std::move(pieces), {kEnd}};
}

}  // namespace

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  static const slipstream::TokenPieces kPieces = make_pieces();
  constexpr std::size_t kAnswerBytesMax = 16;
  const std::string_view input(reinterpret_cast<const char*>(data), n_bytes);
  const std::size_t end = input.find('\n');
  if (end == input.npos || end > kAnswerBytesMax) return 0;

  auto grammar = slipstream::Grammar::parse(
      input.substr(end + 1), static_cast<int>(kPieces.n_tokens()),
      [](std::string_view name) { return static_cast<Token>(name.size() % 256); });
  if (!grammar) return 0;
  // Grammars that use up the server's limit take most of the time and tell nothing new: one in
  // sixteen may, the others end sooner.
  const bool as_served = n_bytes % 16 == 0;
  const std::size_t n_steps_max = slipstream::kGrammarLimits.grammar_steps_max;
  auto matcher = slipstream::GrammarMatcher::create(std::move(*grammar),
                                                    as_served ? n_steps_max : n_steps_max / 64);
  if (!matcher) return 0;
  std::vector<bool> allowed;
  for (const char byte : input.substr(0, end)) {
    if (!matcher->find_allowed(kPieces, allowed)) return 0;
    const Token token = kFirstByte + static_cast<unsigned char>(byte);
    const auto accepted = matcher->accept(token, kPieces);
    if (!accepted) return 0;
    SLIP_CHECK(*accepted == allowed[static_cast<std::size_t>(token)], "accept() disagrees");
    if (!*accepted) return 0;
  }
  return 0;
}
