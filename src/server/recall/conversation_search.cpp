#include "server/recall/conversation_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "retrieval/search/query.h"
#include "server/recall/recall_limits.h"

namespace slipstream {
namespace {

constexpr double kSaturates = 1.2;       // BM25's k1
constexpr double kLengthMatters = 0.75;  // BM25's b
// A piece that is so much worse than the best one is not found.
constexpr double kScoreMin = 0.3;
// A word that more than half of many pieces have says nothing about which to take.
constexpr std::size_t kManyPieces = 8;
constexpr double kLabelTokens = 3;

// The beginning of the text, up to a paragraph's end, or a line's, a sentence's or a word's.
std::string_view first_part(std::string_view text) {
  constexpr std::size_t kBytesMax = kRecallLimits.piece_bytes;
  constexpr std::array<std::string_view, 4> kEnds = {"\n\n", "\n", ". ", " "};
  if (text.size() <= kBytesMax) return text;
  for (const std::string_view end : kEnds) {
    const std::size_t at = text.rfind(end, kBytesMax - end.size());
    if (at != std::string_view::npos && at >= kBytesMax / 3) return text.substr(0, at + end.size());
  }
  std::size_t n = kBytesMax;
  const auto is_inside = [&](std::size_t i) { return (text[i] & 0xC0) == 0x80; };  // a character
  while (n > kBytesMax - 4 && is_inside(n)) --n;
  return text.substr(0, n);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Later lines are indented, so that no text can look like another speaker.
void append_said(std::string& text, std::string_view who, std::string_view said) {
  text += who;
  text += ": ";
  for (const char c : said) {
    text += c;
    if (c == '\n') text += "  ";
  }
  text += '\n';
}

// A long message asks at its beginning or at its end.
std::string ends_of(std::string_view question) {
  constexpr std::size_t kBytesMax = kRecallLimits.question_bytes_max;
  if (question.size() <= kBytesMax) return std::string(question);
  // Words are taken as they come, up to a limit: so the end comes first.
  return std::string(question.substr(question.size() - kBytesMax / 2)) + " " +
         std::string(question.substr(0, kBytesMax / 2));
}

}  // namespace

void ConversationSearch::add(std::string_view who, std::string_view text, std::size_t n_tokens) {
  const double tokens_per_byte =
      static_cast<double>(n_tokens) / static_cast<double>(std::max<std::size_t>(text.size(), 1));
  while (!text.empty()) {
    const std::string_view part = first_part(text);
    text.remove_prefix(part.size());
    const std::string_view said = trimmed(part);
    if (said.empty()) continue;
    if (!is_open_ || pieces_.back().n_bytes + said.size() > kRecallLimits.piece_bytes) {
      pieces_.emplace_back();
      is_open_ = true;
    }
    Piece& piece = pieces_.back();
    append_said(piece.text, who, said);
    piece.n_bytes += said.size();
    piece.n_tokens += tokens_per_byte * static_cast<double>(said.size()) + kLabelTokens;
    add_words(said);
  }
}

void ConversationSearch::add_words(std::string_view text) {
  const auto id = static_cast<PieceId>(pieces_.size() - 1);
  words_.cut(text, [&](const Term& term) {
    ++n_words_;
    ++pieces_.back().n_words;
    Places& places = places_of_[std::hash<std::string_view>()(term.text)];
    if (places.n > 0 && places_[places.first].piece == id) {
      ++places_[places.first].count;
      return true;
    }
    places_.push_back({.piece = id, .count = 1, .next = places.first});
    places.first = static_cast<std::uint32_t>(places_.size() - 1);
    ++places.n;
    return true;
  });
}

// The rarest first.
std::vector<ConversationSearch::QueryWord> ConversationSearch::words_of(std::string_view question) {
  std::vector<QueryWord> found;
  for (const QueryTerm& term : read_query(ends_of(question), words_).terms) {
    const auto places = places_of_.find(std::hash<std::string_view>()(term.text));
    if (places == places_of_.end()) continue;
    const std::size_t n_with = places->second.n;
    if (pieces_.size() >= kManyPieces && n_with > pieces_.size() / 2) continue;
    const double n_without = static_cast<double>(pieces_.size() - n_with);
    const double weight = std::log(1 + (n_without + 0.5) / (static_cast<double>(n_with) + 0.5));
    found.push_back({.places = places->second, .weight = weight});
  }
  std::ranges::stable_sort(found, {}, [](const QueryWord& word) { return word.places.n; });
  return found;
}

std::vector<ConversationSearch::PieceId> ConversationSearch::find(std::string_view question) {
  if (pieces_.empty()) return {};
  scores_.resize(pieces_.size());
  const double usual = static_cast<double>(n_words_) / static_cast<double>(pieces_.size());
  std::vector<PieceId> found;
  std::size_t n_places = 0;
  for (const QueryWord& word : words_of(question)) {
    n_places += word.places.n;
    if (n_places > kRecallLimits.places_max && !found.empty()) break;
    std::uint32_t at = word.places.first;
    for (std::uint32_t i = 0; i < word.places.n; ++i, at = places_[at].next) {
      const Place& place = places_[at];
      const double count = place.count;
      const double length = static_cast<double>(pieces_[place.piece].n_words) / usual;
      if (scores_[place.piece] == 0) found.push_back(place.piece);
      scores_[place.piece] += word.weight * count * (kSaturates + 1) /
                              (count + kSaturates * (1 - kLengthMatters + kLengthMatters * length));
    }
  }
  // What was said later is more likely still true.
  const auto is_better = [&](PieceId a, PieceId b) {
    return scores_[a] != scores_[b] ? scores_[a] > scores_[b] : a > b;
  };
  std::vector<PieceId> best(std::min(found.size(), kRecallLimits.found_max));
  std::ranges::partial_sort_copy(found, best, is_better);
  std::erase_if(best, [&, least = best.empty() ? 0 : kScoreMin * scores_[best.front()]](
                          PieceId id) { return scores_[id] < least; });
  for (const PieceId id : found) scores_[id] = 0;
  return best;
}

}  // namespace slipstream
