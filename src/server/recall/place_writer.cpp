#include "server/recall/place_writer.h"

#include <algorithm>
#include <climits>
#include <string_view>
#include <utility>
#include <vector>

namespace slipstream {
namespace {

constexpr std::string_view kCutMark = "…";

int n_tokens(const Vocabulary& vocabulary, const std::string& text) {
  const Result<std::vector<Token>> tokens = vocabulary.tokenize(text, false, false);
  return tokens && std::cmp_less(tokens->size(), INT_MAX) ? static_cast<int>(tokens->size())
                                                          : INT_MAX;
}

// Not in the middle of a character.
std::size_t end_of_character(std::string_view text, std::size_t n_bytes) {
  while (n_bytes > 0 && (static_cast<unsigned char>(text[n_bytes]) & 0xC0U) == 0x80U) --n_bytes;
  return n_bytes;
}

// The beginning of a text that has at most so many tokens: whole lines, if there is one.
std::string beginning(const Vocabulary& vocabulary, const std::string& text, int n_tokens_max) {
  std::string kept = text;
  if (const std::size_t n_max =
          PlaceWriter::kBytesPerTokenMax * static_cast<std::size_t>(n_tokens_max);
      kept.size() > n_max) {
    const std::size_t end = kept.rfind('\n', n_max - 1);
    kept.resize(end == std::string::npos ? end_of_character(kept, n_max) : end + 1);
  }
  while (!kept.empty()) {
    const int n = n_tokens(vocabulary, kept);
    if (n <= n_tokens_max) return kept;
    // Near the end first: the text has about as many tokens in each of its bytes.
    const std::size_t n_bytes =
        kept.size() * static_cast<std::size_t>(n_tokens_max) / static_cast<std::size_t>(n);
    const std::size_t end = n_bytes == 0 ? std::string::npos : kept.rfind('\n', n_bytes - 1);
    kept.resize(end == std::string::npos ? end_of_character(kept, n_bytes) : end + 1);
  }
  return kept;
}

}  // namespace

int PlaceWriter::n_tokens_of(const RecallSource& source, const std::string& text) const {
  return n_tokens(vocabulary_,
                  numbered(n_shown_ + places_.size() + 1, {.source = source, .text = text}));
}

bool PlaceWriter::has(const RecallSource& source) const {
  return std::ranges::any_of(places_,
                             [&](const AddedPlace& place) { return place.source.covers(source); });
}

bool PlaceWriter::add(RecallSource source, const std::string& text) {
  return add(std::move(source), text, n_left_);
}

bool PlaceWriter::add(RecallSource source, const std::string& text, int n_tokens_max) {
  n_tokens_max = std::min(n_tokens_max, n_left_) - kTokensOfHead;
  if (n_tokens_max <= 0) return false;
  std::string kept = beginning(vocabulary_, text, n_tokens_max);
  if (kept.empty()) return false;
  const bool is_whole = kept.size() == text.size();
  if (!is_whole) {
    const auto n_lines = static_cast<int>(std::ranges::count(kept, '\n'));
    const bool ends_in_line = !kept.ends_with('\n');
    source.last_line = source.first_line + n_lines - (ends_in_line ? 0 : 1);
    if (ends_in_line) kept += kCutMark;
  }
  const int n = n_tokens_of(source, kept);
  if (n > n_left_) return false;
  n_left_ -= n;
  n_used_ += n;
  places_.push_back({.source = std::move(source), .text = std::move(kept)});
  return is_whole;
}

}  // namespace slipstream
