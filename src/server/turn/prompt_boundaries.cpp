#include "server/turn/prompt_boundaries.h"

#include <algorithm>
#include <cstddef>

namespace slipstream {
namespace {

constexpr std::size_t kFirstWordsBytes = 256;  // enough to find them again

// The tokens that end before the byte at `offset`, without the last of them, which may look
// different where another text follows.
int tokens_before(const Vocabulary& vocabulary, std::span<const Token> tokens,
                  const std::string& text, std::size_t offset) {
  std::size_t n = 0;
  // The beginning of the text may be a token that the text does not show.
  const bool is_hidden = !tokens.empty() && vocabulary.is_control(tokens[0]) &&
                         !text.starts_with(vocabulary.piece(tokens[0], true));
  if (is_hidden) ++n;
  std::size_t at = 0;
  while (n < tokens.size() && (at += vocabulary.piece(tokens[n], true).size()) <= offset) ++n;
  return n == 0 ? 0 : static_cast<int>(n) - 1;
}

}  // namespace

std::string first_words_of_user(const Json& messages) {
  for (const Json& message : messages) {
    const Json* role = member(message, "role");
    if (role == nullptr || *role != "user") continue;
    const Json* content = member(message, "content");
    if (content == nullptr) return {};
    if (content->is_array() && !content->empty()) content = member(content->front(), "text");
    if (content == nullptr || !content->is_string()) return {};
    return content->get_ref<const std::string&>().substr(0, kFirstWordsBytes);
  }
  return {};
}

std::vector<int> prompt_boundaries(const Vocabulary& vocabulary, const MarkedText& prompt,
                                   std::span<const Token> tokens, std::string_view first_words) {
  std::vector<int> boundaries;
  const auto add = [&](std::size_t offset) {
    const int n = tokens_before(vocabulary, tokens, prompt.text(), offset);
    if (n > 0 && (boundaries.empty() || n > boundaries.back())) boundaries.push_back(n);
  };
  const std::size_t user =
      first_words.empty() ? std::string::npos : prompt.text().find(first_words);
  if (user != std::string::npos) add(user);
  if (!prompt.client_ranges().empty()) add(prompt.client_ranges().back().end);
  return boundaries;
}

}  // namespace slipstream
