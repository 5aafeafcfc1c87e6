#include "engine/text/marked_text.h"

#include <algorithm>

#include "base/check.h"

namespace slipstream {

MarkedText::MarkedText(std::string text, Origin origin) : text_(std::move(text)) {
  if (origin == Origin::kClient) mark(0, text_.size());
}

void MarkedText::mark(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!client_.empty() && client_.back().end == begin) {
    client_.back().end = end;
  } else {
    client_.push_back({begin, end});
  }
}

void MarkedText::append(std::string_view text, Origin origin) {
  const std::size_t begin = text_.size();
  text_ += text;
  if (origin == Origin::kClient) mark(begin, text_.size());
}

void MarkedText::append(const MarkedText& other, std::size_t begin, std::size_t end) {
  SLIP_CHECK(this != &other && begin <= end && end <= other.size(), "no part of the other text");
  const std::size_t base = text_.size();
  text_.append(other.text_, begin, end - begin);
  auto range = std::ranges::partition_point(other.client_,
                                            [begin](const Range& it) { return it.end <= begin; });
  for (; range != other.client_.end() && range->begin < end; ++range) {
    mark(base + std::max(range->begin, begin) - begin, base + std::min(range->end, end) - begin);
  }
}

MarkedText MarkedText::slice(std::size_t begin, std::size_t end) const {
  MarkedText part;
  part.append(*this, begin, end);
  return part;
}

MarkedText MarkedText::slice(std::string_view part) const {
  const auto begin = static_cast<std::size_t>(part.data() - text_.data());
  return slice(begin, begin + part.size());
}

MarkedText MarkedText::with_text(std::string text) const {
  SLIP_CHECK(text.size() == size(), "the marks are of another text");
  MarkedText other;
  other.text_ = std::move(text);
  other.client_ = client_;
  return other;
}

}  // namespace slipstream
