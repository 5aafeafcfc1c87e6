#include "server/schema/code_point_set.h"

#include <algorithm>

namespace slipstream {
namespace {

constexpr char32_t kSurrogateFirst = 0xD800;
constexpr char32_t kSurrogateLast = 0xDFFF;
constexpr char32_t kCodePointMax = 0x10FFFF;

void add_without_surrogates(std::vector<CodePointRange>& ranges, CodePointRange range) {
  if (range.last < kSurrogateFirst || range.first > kSurrogateLast) {
    ranges.push_back(range);
    return;
  }
  if (range.first < kSurrogateFirst) ranges.push_back({range.first, kSurrogateFirst - 1});
  if (range.last > kSurrogateLast) ranges.push_back({kSurrogateLast + 1, range.last});
}

}  // namespace

CodePointSet::CodePointSet(std::vector<CodePointRange> ranges) {
  std::ranges::sort(ranges);
  std::vector<CodePointRange> merged;
  for (const CodePointRange& range : ranges) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  for (const CodePointRange& range : merged) add_without_surrogates(ranges_, range);
}

CodePointSet CodePointSet::all() { return CodePointSet({{0, kCodePointMax}}); }

CodePointSet CodePointSet::complement() const {
  std::vector<CodePointRange> others;
  char32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (next < range.first) others.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kCodePointMax) others.push_back({next, kCodePointMax});
  return CodePointSet(std::move(others));
}

CodePointSet CodePointSet::intersection(const CodePointSet& other) const {
  std::vector<CodePointRange> common;
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    const CodePointRange both{std::max(a->first, b->first), std::min(a->last, b->last)};
    if (both.first <= both.last) common.push_back(both);
    if (a->last < b->last) {
      ++a;
    } else {
      ++b;
    }
  }
  return CodePointSet(std::move(common));
}

}  // namespace slipstream
