// For tests: whether a text matches a grammar, decided by the engine's own matcher.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/sampling/grammar_matcher.h"

namespace slipstream {

// Uses a vocabulary of single bytes, and token 0, which ends answers.
class SchemaMatcher {
 public:
  explicit SchemaMatcher(std::string_view grammar) : matcher_(made(grammar)) {}

  // Continues where the last call ended. Returns false and changes nothing if the byte
  // is not allowed.
  bool accept(char byte) {
    const Token token = 1 + static_cast<unsigned char>(byte);
    return matcher_.accept(token, pieces()).value_or(false);
  }
  bool accept(std::string_view text) {
    for (const char byte : text) {
      if (!accept(byte)) return false;
    }
    return true;
  }
  bool may_end() { return matcher_.accept(0, pieces()).value_or(false); }
  // The bytes that may follow.
  std::string allowed() {
    std::vector<bool> tokens;
    SLIP_CHECK(matcher_.find_allowed(pieces(), tokens).has_value(), "too ambiguous");
    std::string bytes;
    for (std::size_t i = 1; i < tokens.size(); ++i) {
      if (tokens[i]) bytes += static_cast<char>(i - 1);
    }
    return bytes;
  }

  static bool matches(std::string_view grammar, std::string_view text) {
    SchemaMatcher matcher(grammar);
    return matcher.accept(text) && matcher.may_end();
  }

 private:
  static const TokenPieces& pieces() {
    static const TokenPieces kPieces = [] {
      std::vector<std::string> all = {""};
      for (int byte = 0; byte < 256; ++byte) all.emplace_back(1, static_cast<char>(byte));
      return TokenPieces(std::move(all), {0});
    }();
    return kPieces;
  }
  static GrammarMatcher made(std::string_view text) {
    Result<Grammar> grammar =
        Grammar::parse(text, 257, [](std::string_view) { return std::nullopt; });
    SLIP_CHECK(grammar.has_value(), grammar ? "" : grammar.error().message);
    Result<GrammarMatcher> matcher = GrammarMatcher::create(std::move(*grammar));
    SLIP_CHECK(matcher.has_value(), "too ambiguous");
    return std::move(*matcher);
  }

  GrammarMatcher matcher_;
};

}  // namespace slipstream
