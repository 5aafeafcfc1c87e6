#include "server/turn/citations.h"

#include <algorithm>
#include <utility>

namespace slipstream {
namespace {

constexpr std::size_t kFoundMax = 256;  // a model can write one number without end
constexpr std::size_t kInBracketMax = 16;

}  // namespace

void CitationFinder::take_number() {
  if (number_ > 0) numbers_.push_back(number_ - 1);
  number_ = 0;
}

void CitationFinder::push(std::string_view text) {
  for (const char c : text) {
    const bool begins_char = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    if (begins_char) ++n_chars_;
    if (c == '[') {
      is_open_ = true;
      start_ = n_chars_ - 1;
      number_ = 0;
      numbers_.clear();
    } else if (!is_open_) {
      continue;
    } else if (c >= '0' && c <= '9') {
      number_ = std::min<std::size_t>(10 * number_ + static_cast<std::size_t>(c - '0'),
                                      sources_->all.size() + 1);
    } else if (c == ',' || c == ' ') {
      take_number();
      is_open_ = numbers_.size() < kInBracketMax;
    } else {
      is_open_ = false;
      if (c != ']') continue;
      take_number();
      for (const std::size_t idx : numbers_) {
        if (idx >= sources_->all.size() || found_.size() == kFoundMax) continue;
        is_cited_[idx] = true;
        found_.push_back({.source = sources_->all[idx], .start = start_, .end = n_chars_});
      }
    }
  }
}

std::vector<Citation> CitationFinder::finish() const {
  std::vector<Citation> all = found_;
  for (std::size_t i = sources_->n_before; i < sources_->all.size(); ++i) {
    if (!is_cited_[i]) all.push_back({.source = sources_->all[i]});
  }
  return all;
}

}  // namespace slipstream
