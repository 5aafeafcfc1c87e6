#include "server/turn/prompt_boundaries.h"

#include <algorithm>
#include <cstddef>

namespace slipstream {
namespace {

constexpr std::size_t kFirstWordsBytes = 256;  // enough to find them again

// Reads the text that tokens were made of.
class TokenReader {
 public:
  TokenReader(const Vocabulary& vocabulary, std::span<const Token> tokens, const std::string& text)
      : vocabulary_(vocabulary), tokens_(tokens) {
    // The first token may be a control token that is not in the text, such as BOS.
    const bool is_hidden = !tokens.empty() && vocabulary.is_control(tokens[0]) &&
                           !text.starts_with(vocabulary.piece(tokens[0], true));
    if (is_hidden) ++n_;
  }

  // The number of tokens that end before the byte at `offset`, minus one: the last of them may be
  // another token if another text follows. REQUIRES: offsets ascend from call to call.
  [[nodiscard]] int n_before(std::size_t offset) {
    while (n_ < tokens_.size()) {
      const std::size_t end = at_ + vocabulary_.piece(tokens_[n_], true).size();
      if (end > offset) break;
      at_ = end;
      ++n_;
    }
    return n_ == 0 ? 0 : static_cast<int>(n_) - 1;
  }

 private:
  const Vocabulary& vocabulary_;
  const std::span<const Token> tokens_;
  std::size_t n_ = 0;   // number of tokens read
  std::size_t at_ = 0;  // offset of the next token
};

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
  std::vector<std::size_t> offsets;
  const std::size_t user =
      first_words.empty() ? std::string::npos : prompt.text().find(first_words);
  if (user != std::string::npos) offsets.push_back(user);
  if (!prompt.client_ranges().empty()) offsets.push_back(prompt.client_ranges().back().end);
  std::ranges::sort(offsets);
  std::vector<int> boundaries;
  TokenReader reader(vocabulary, tokens, prompt.text());
  for (const std::size_t offset : offsets) {
    const int n = reader.n_before(offset);
    if (n > 0 && (boundaries.empty() || n > boundaries.back())) boundaries.push_back(n);
  }
  return boundaries;
}

}  // namespace slipstream
