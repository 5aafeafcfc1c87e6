#include "retrieval/text/words.h"

#include <libstemmer.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.h"
#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

enum class Letter : std::uint8_t { kNone, kLower, kUpper, kDigit, kMark, kUnderscore, kUnspaced };

// Scripts in which words have no spaces between them.
bool is_unspaced(char32_t c) {
  constexpr std::array<std::pair<char32_t, char32_t>, 9> kRanges = {{{0x0E00, 0x0EFF},
                                                                     {0x1000, 0x109F},
                                                                     {0x1100, 0x11FF},
                                                                     {0x1780, 0x17FF},
                                                                     {0x3040, 0x30FF},
                                                                     {0x3400, 0x4DBF},
                                                                     {0x4E00, 0x9FFF},
                                                                     {0xAC00, 0xD7AF},
                                                                     {0x20000, 0x323AF}}};
  for (const auto& [first, last] : kRanges) {
    if (c >= first && c <= last) return true;
  }
  return false;
}

constexpr Letter ascii_letter(char c) {
  if (c >= 'a' && c <= 'z') return Letter::kLower;
  if (c >= 'A' && c <= 'Z') return Letter::kUpper;
  if (c >= '0' && c <= '9') return Letter::kDigit;
  return c == '_' ? Letter::kUnderscore : Letter::kNone;
}

// Most of all text is ASCII.
constexpr std::array<Letter, 128> kAsciiLetters = [] {
  std::array<Letter, 128> letters{};
  for (std::size_t c = 0; c < letters.size(); ++c) letters[c] = ascii_letter(static_cast<char>(c));
  return letters;
}();

Letter unicode_letter(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT: return Letter::kUpper;
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return is_unspaced(c) ? Letter::kUnspaced : Letter::kLower;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC: return is_unspaced(c) ? Letter::kUnspaced : Letter::kMark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return Letter::kDigit;
    default: return Letter::kNone;
  }
}

struct Character {
  Letter letter = Letter::kNone;
  std::size_t n_bytes = 1;
  char32_t code_point = 0;
};

Character unicode_character_at(std::string_view text, std::size_t at) {
  const Utf8Char found = decode_utf8(text.substr(at));
  if (found.kind != Utf8Char::Kind::kValid) return {Letter::kNone, found.n_bytes, 0};
  return {unicode_letter(found.code_point), found.n_bytes, found.code_point};
}

inline Character character_at(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < kAsciiLetters.size()) return {kAsciiLetters[byte], 1, byte};
  return unicode_character_at(text, at);
}

// Appends the letter in lower case, without its accent. A mark that stands alone vanishes.
void append_folded(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    return;
  }
  std::array<utf8proc_int32_t, 16> folded{};
  int boundary_class = 0;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE |
                                                      UTF8PROC_CASEFOLD | UTF8PROC_STRIPMARK);
  const utf8proc_ssize_t n = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), folded.data(), static_cast<utf8proc_ssize_t>(folded.size()),
      options, &boundary_class);
  for (utf8proc_ssize_t i = 0; i < n && i < static_cast<utf8proc_ssize_t>(folded.size()); ++i) {
    const auto letter = static_cast<char32_t>(folded[static_cast<std::size_t>(i)]);
    // Some letters are written as several with spaces between them.
    if (unicode_letter(letter) != Letter::kNone) append_utf8(text, letter);
  }
}

// Whether an identifier has a new part at this upper-case letter, of which `next` is the end: fooBar,
// FOOBar, utf8Bar.
bool begins_part(Letter before, std::string_view text, std::size_t next) {
  if (before == Letter::kLower || before == Letter::kDigit) return true;
  return before == Letter::kUpper && next < text.size() &&
         character_at(text, next).letter == Letter::kLower;
}

}  // namespace

void Words::Free::operator()(sb_stemmer* stemmer) const { sb_stemmer_delete(stemmer); }
Words::Words() : stemmer_(sb_stemmer_new("english", nullptr)) {}
Words::~Words() = default;
Words::Words(Words&&) noexcept = default;
Words& Words::operator=(Words&&) noexcept = default;

std::string_view Words::stem(std::string_view word) {
  constexpr std::size_t kBytesMax = KnownStem::kBytesMax;
  if (word.size() > kBytesMax) return compute_stem(word);
  KnownStem& known = stems_[std::hash<std::string_view>()(word) % kKnownStems];
  if (word != std::string_view(known.word.data(), known.n_word)) {
    const std::string_view computed = compute_stem(word);
    if (computed.size() > kBytesMax) return computed;  // it may be longer than the word
    std::ranges::copy(word, known.word.begin());
    std::ranges::copy(computed, known.stem.begin());
    known.n_word = static_cast<std::uint8_t>(word.size());
    known.n_stem = static_cast<std::uint8_t>(computed.size());
  }
  return {known.stem.data(), known.n_stem};
}

std::string_view Words::compute_stem(std::string_view word) {
  if (stemmer_ == nullptr) return word;
  const auto* stemmed =
      sb_stemmer_stem(stemmer_.get(), reinterpret_cast<const sb_symbol*>(word.data()),
                      static_cast<int>(word.size()));
  if (stemmed == nullptr) return word;
  return {reinterpret_cast<const char*>(stemmed),
          static_cast<std::size_t>(sb_stemmer_length(stemmer_.get()))};
}

// Reads an identifier or a word: its parts, folded. Returns where it ends.
std::size_t Words::read_word(std::string_view text, std::size_t at) {
  folded_.clear();
  parts_.clear();
  Letter before = Letter::kNone;
  bool is_in_part = false;
  const auto end_part = [&](std::size_t text_end) {
    if (!std::exchange(is_in_part, false)) return;
    parts_.back().end = folded_.size();
    parts_.back().text_end = text_end;
    if (parts_.back().end == parts_.back().begin) parts_.pop_back();
  };
  while (at < text.size()) {
    const Character now = character_at(text, at);
    if (now.letter == Letter::kNone || now.letter == Letter::kUnspaced) break;
    const std::size_t next = at + now.n_bytes;
    if (now.letter == Letter::kUnderscore) {
      end_part(at);
    } else {
      const bool is_number = !folded_.empty() && folded_[0] >= '0' && folded_[0] <= '9';
      if (now.letter == Letter::kUpper && !is_number && begins_part(before, text, next))
        end_part(at);
      if (!is_in_part) {
        parts_.push_back({.begin = folded_.size(), .end = 0, .text_begin = at, .text_end = 0});
        is_in_part = true;
      }
      append_folded(folded_, now.code_point);
    }
    if (now.letter != Letter::kMark) before = now.letter;  // it belongs to the letter before it
    at = next;
  }
  end_part(at);
  return at;
}

bool Words::tell_word(std::size_t begin, std::size_t end, const OnTerm& on_term) {
  const std::size_t n_bytes_max = kRetrievalLimits.term_bytes_max;
  const bool has_parts = parts_.size() > 1;
  if (has_parts && folded_.size() <= n_bytes_max) {
    const std::string_view whole = is_wanted(folded_) ? std::string_view(folded_) : "";
    if (!on_term({.text = whole, .begin = begin, .end = end, .is_whole = true})) return false;
  }
  for (const Part& part : parts_) {
    const std::string_view word =
        std::string_view(folded_).substr(part.begin, part.end - part.begin);
    if (word.size() > n_bytes_max) continue;
    const Term term{.text = is_wanted(word) ? stem(word) : "",
                    .begin = part.text_begin,
                    .end = part.text_end,
                    .is_part = has_parts};
    if (!on_term(term)) return false;
  }
  return true;
}

// Tells each letter with the one after it; a letter that stands alone is a term.
std::size_t Words::read_pairs(std::string_view text, std::size_t at, const OnTerm& on_term,
                              bool& goes_on) {
  std::size_t n_pairs = 0;
  while (goes_on) {
    const std::size_t next = at + character_at(text, at).n_bytes;
    const bool has_next =
        next < text.size() && character_at(text, next).letter == Letter::kUnspaced;
    if (!has_next && n_pairs > 0) return next;
    const std::size_t end = has_next ? next + character_at(text, next).n_bytes : next;
    goes_on = on_term({.text = text.substr(at, end - at), .begin = at, .end = end});
    ++n_pairs;
    if (!has_next) return next;
    at = next;
  }
  return at;
}

bool Words::cut(std::string_view text, const OnTerm& on_term) {
  return cut(text, FirstBytes().set(), on_term);
}

bool Words::cut(std::string_view text, const FirstBytes& wanted, const OnTerm& on_term) {
  wanted_ = wanted;
  std::size_t at = 0;
  while (at < text.size()) {
    const Character now = character_at(text, at);
    if (now.letter == Letter::kNone) {
      at += now.n_bytes;
    } else if (now.letter == Letter::kUnspaced) {
      bool goes_on = true;
      at = read_pairs(text, at, on_term, goes_on);
      if (!goes_on) return false;
    } else {
      const std::size_t begin = at;
      at = read_word(text, at);
      if (!tell_word(begin, at, on_term)) return false;
    }
  }
  return true;
}

std::vector<std::string> Words::terms(std::string_view text) {
  std::vector<std::string> found;
  cut(text, [&](const Term& term) {
    found.emplace_back(term.text);
    return true;
  });
  return found;
}

}  // namespace slipstream
