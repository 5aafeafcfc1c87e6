#include "engine/text/special_tokens.h"

#include <llama.h>

#include <algorithm>
#include <cctype>

namespace slipstream {
namespace {

// As in libllama: in the C locale, byte by byte.
bool is_space_byte(char byte) { return std::isspace(static_cast<unsigned char>(byte)) != 0; }

}  // namespace

SpecialTokens::SpecialTokens(const llama_vocab* vocab) : vocab_(vocab) {
  const int n_tokens = llama_vocab_n_tokens(vocab);
  for (Token token = 0; token < n_tokens; ++token) {
    const int attributes = llama_vocab_get_attr(vocab, token);
    const bool is_control =
        (attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) != 0;
    const bool is_by_hand = (attributes & LLAMA_TOKEN_ATTR_USER_DEFINED) != 0;
    const char* text = llama_vocab_get_text(vocab, token);
    if ((!is_control && !is_by_hand) || text == nullptr || *text == '\0') continue;
    (is_control ? control_ : by_hand_).add({.text = text, .token = token});
  }
  control_.sort();
  by_hand_.sort();
}

void SpecialTokens::Matcher::sort() {
  std::ranges::stable_sort(names_, {}, &Named::text);
  for (const Named& name : names_) starts_[static_cast<unsigned char>(name.text[0])] = true;
}

const SpecialTokens::Named* SpecialTokens::Matcher::longest(std::string_view text,
                                                            std::size_t at) const {
  if (!starts_[static_cast<unsigned char>(text[at])]) return nullptr;
  const Named* found = nullptr;
  // Names that match the text so far are adjacent, and the shortest of them comes first.
  std::span<const Named> rest = names_;
  for (std::size_t n = 0; at + n < text.size(); ++n) {
    const auto byte_of = [n](const Named& name) {
      return static_cast<unsigned char>(name.text[n]);
    };
    const auto byte = static_cast<unsigned char>(text[at + n]);
    const auto alike = std::ranges::equal_range(rest, byte, {}, byte_of);
    if (alike.empty()) break;
    rest = {alike.begin(), alike.end()};
    if (rest.front().text.size() == n + 1) {
      found = &rest.front();
      while (!rest.empty() && rest.front().text.size() == n + 1) rest = rest.subspan(1);
    }
  }
  return found;
}

void SpecialTokens::find(const Matcher& matcher, std::string_view text, MarkedText::Range names,
                         MarkedText::Range space, std::vector<Cut>& cuts) const {
  if (matcher.is_empty()) return;
  if (!cuts.empty()) space.begin = std::max(space.begin, cuts.back().end);
  const std::string_view until = text.substr(0, names.end);
  for (std::size_t at = std::max(names.begin, space.begin); at < names.end;) {
    const Named* name = matcher.longest(until, at);
    if (name == nullptr) {
      ++at;
      continue;
    }
    Cut cut{at, at + name->text.size(), name->token};
    const int attributes = llama_vocab_get_attr(vocab_, cut.token);
    if ((attributes & LLAMA_TOKEN_ATTR_LSTRIP) != 0) {
      while (cut.begin > space.begin && is_space_byte(text[cut.begin - 1])) --cut.begin;
    }
    if ((attributes & LLAMA_TOKEN_ATTR_RSTRIP) != 0) {
      while (cut.end < space.end && is_space_byte(text[cut.end])) ++cut.end;
    }
    at = space.begin = cut.end;
    cuts.push_back(cut);
  }
}

std::vector<SpecialTokens::Cut> SpecialTokens::find(
    std::string_view text, std::span<const MarkedText::Range> client) const {
  const MarkedText::Range whole{0, text.size()};
  std::vector<Cut> control;
  std::size_t at = 0;
  for (const MarkedText::Range& range : client) {
    find(control_, text, {at, range.begin}, whole, control);
    at = range.end;
  }
  find(control_, text, {at, text.size()}, whole, control);
  if (by_hand_.is_empty()) return control;

  // Only between control tokens: a client's text cannot take a part of one away.
  std::vector<Cut> cuts;
  at = 0;
  for (const Cut& cut : control) {
    find(by_hand_, text, {at, cut.begin}, {at, cut.begin}, cuts);
    cuts.push_back(cut);
    at = cut.end;
  }
  find(by_hand_, text, {at, text.size()}, {at, text.size()}, cuts);
  return cuts;
}

}  // namespace slipstream
