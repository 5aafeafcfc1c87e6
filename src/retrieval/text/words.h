// Words: cuts text into the terms under which it is found, source code and prose alike.
//
//   parseHTTPRequest(max_body_bytes)   parsehttprequest pars http request
//                                      maxbodybytes max bodi byte
//
// An identifier of several parts is a term as a whole, written in one way whatever its style, and
// each of its parts is one. Parts and words of prose are reduced to their stems (Snowball, English;
// other languages keep most of their forms). Letters are lower-case and without accents. Languages
// without spaces between words (Chinese, Japanese, Korean, Thai) become pairs of letters. Bytes that
// are not UTF-8 separate words.
//
// Threads: thread-compatible: a stemmer has a buffer.
// Errors:  none. A term longer than RetrievalLimits::term_bytes_max is left out.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct sb_stemmer;

namespace slipstream {

struct Term {
  std::string_view text;  // valid until the callback returns
  std::size_t begin;      // where it stands in the text, in bytes
  std::size_t end;
  // One term of an identifier of several parts: the whole of it comes first.
  bool is_whole = false;
  bool is_part = false;
};

class Words {
 public:
  Words();
  ~Words();
  Words(Words&&) noexcept;
  Words& operator=(Words&&) noexcept;

  // Returns false to end the cutting.
  using OnTerm = std::function<bool(const Term&)>;
  // Returns false if the callback has ended it.
  bool cut(std::string_view text, const OnTerm& on_term);
  // The same for somebody who looks for a few terms. Of one that begins with another byte it is only
  // told that it is there: its text is empty. (A stem begins as its word does.)
  using FirstBytes = std::bitset<256>;
  bool cut(std::string_view text, const FirstBytes& wanted, const OnTerm& on_term);
  // The terms of a text, in order, with repetitions.
  [[nodiscard]] std::vector<std::string> terms(std::string_view text);

 private:
  struct Part {
    std::size_t begin;  // in folded_
    std::size_t end;
    std::size_t text_begin;
    std::size_t text_end;
  };
  // The stem of a word that was asked for of late: of ten words nine were, and stemming takes most
  // of the time.
  struct KnownStem {
    static constexpr std::size_t kBytesMax = 15;
    std::uint8_t n_word = 0;
    std::uint8_t n_stem = 0;
    std::array<char, kBytesMax> word;
    std::array<char, kBytesMax> stem;
  };
  static constexpr std::size_t kKnownStems = 8192;  // a power of two

  // Valid until the next call.
  [[nodiscard]] std::string_view stem(std::string_view word);
  [[nodiscard]] std::string_view compute_stem(std::string_view word);
  [[nodiscard]] bool is_wanted(std::string_view word) const {
    return wanted_[static_cast<unsigned char>(word.front())];
  }
  std::size_t read_word(std::string_view text, std::size_t at);
  bool tell_word(std::size_t begin, std::size_t end, const OnTerm& on_term);
  std::size_t read_pairs(std::string_view text, std::size_t at, const OnTerm& on_term,
                         bool& goes_on);

  struct Free {
    void operator()(sb_stemmer* stemmer) const;
  };
  std::unique_ptr<sb_stemmer, Free> stemmer_;
  std::vector<KnownStem> stems_ = std::vector<KnownStem>(kKnownStems);  // by the word's hash
  FirstBytes wanted_;
  // Of the word that is being read. Members, so that they keep their memory.
  std::string folded_;
  std::vector<Part> parts_;
};

}  // namespace slipstream
