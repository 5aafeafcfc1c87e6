// JsonReader: reads one JSON value byte by byte and writes it as strict JSON as it arrives.
//
// Models write almost correct JSON. Deviations with only one possible meaning are repaired:
// Python's True, False, None and single quotes, unquoted keys, raw line feeds in strings, a comma
// before a closing bracket, escapes unknown to JSON, half of a surrogate pair. White space is kept.
// Anything else fails at the byte where it is found. Numbers and words are written once they are
// complete, everything else immediately.
//
// Threads: thread-compatible.
// Errors:  a Step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace slipstream {

class JsonReader {
 public:
  enum class Step {
    kTaken,
    kDone,        // the byte was the last of the value
    kDoneBefore,  // a number or word ended before this byte, which was not taken
    kFailed,      // the byte cannot follow, and was not taken
  };
  // How strings are quoted: as in JSON and Python, or, in Gemma 4, between <|"|> without escapes.
  enum class Quotes { kJson, kGemma };

  explicit JsonReader(Quotes quotes = Quotes::kJson) : quotes_(quotes) {}

  // Takes a byte and appends to `out`. The reader is finished after any Step other than kTaken.
  [[nodiscard]] Step push(char byte, std::string& out);
  // The input ends here. Appends the shortest text that makes `out` a value.
  void complete(std::string& out);
  // Whether only closing brackets are missing.
  [[nodiscard]] bool lacks_only_brackets() const;
  // The text that was read but not written yet, except for a comma.
  [[nodiscard]] std::string unwritten() const;
  // Whether the input ends within an escape, or between the halves of a surrogate pair.
  [[nodiscard]] bool is_within_escape() const;

 private:
  enum class State {
    kValue,
    kKeyOrClose,
    kColon,
    kCommaOrClose,
    kQuote,  // within the opening quote of Gemma
    kString,
    kEscape,
    kHex,
    kWord,  // a number, a word or an unquoted key, kept in token_
  };

  Step push_value(char byte, std::string& out);
  Step push_key(char byte, std::string& out);
  Step push_comma_or_close(char byte, std::string& out);
  Step push_quote(char byte, std::string& out);
  Step push_string(char byte, std::string& out);
  void push_string_byte(char byte, std::string& out);
  Step push_escape(char byte, std::string& out);
  Step push_hex(char byte, std::string& out);
  Step push_word(char byte, std::string& out);

  Step open(char bracket, std::string& out);
  Step close(char bracket, std::string& out);
  void begin_string(char quote, std::string& out);
  Step end_string(std::string& out);
  Step end_value();
  bool write_word(std::string& out) const;
  void write_comma(std::string& out);
  void write_lone_surrogate(std::string& out);

  Quotes quotes_;
  State state_ = State::kValue;
  std::string open_;  // the brackets that are open
  bool is_key_ = false;
  bool first_ = true;   // the innermost bracket is still empty
  bool comma_ = false;  // a comma was read but not written: a closing bracket may follow
  std::string space_;   // white space after that comma
  char quote_ = '"';
  std::string token_;
  std::uint32_t high_surrogate_ = 0;  // read but not written: its other half may follow
};

// If the text is one JSON value by the rules above, appends it to `out` and returns true.
[[nodiscard]] bool append_json_value(std::string_view text, std::string& out);
// Appends the bytes of the text, escaped as inside a JSON string.
void append_json_escaped(std::string_view text, std::string& out);
void append_json_string(std::string_view text, std::string& out);
// The meaning of a strict JSON string; `text` is the part between the quotes.
[[nodiscard]] std::string json_unescaped(std::string_view text);

}  // namespace slipstream
