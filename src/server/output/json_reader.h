// JsonReader: reads one JSON value byte by byte and writes it as strict JSON, as it arrives.
//
// Models write JSON nearly right. What can mean only one thing is repaired on the way: Python's
// True, False, None and single quotes, unquoted keys, raw line feeds in strings, a comma before a
// closing bracket, escapes that JSON does not know, half of a surrogate pair. White space is kept.
// Anything else fails at the byte where it is found. Numbers and words are written when they are
// complete, all else at once.
//
// Threads: thread-compatible. Errors: a Step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace slipstream {

class JsonReader {
 public:
  enum class Step {
    kTaken,
    kDone,        // the byte was the value's last
    kDoneBefore,  // a number or word ended before this byte, which was not taken
    kFailed,      // the byte cannot follow, and was not taken
  };
  // How strings are quoted: as in JSON and Python, or between <|"|> as Gemma 4 does, with no
  // escapes.
  enum class Quotes { kJson, kGemma };

  explicit JsonReader(Quotes quotes = Quotes::kJson) : quotes_(quotes) {}

  // Takes a byte and appends to `out`. After any Step but kTaken the reader is finished.
  [[nodiscard]] Step push(char byte, std::string& out);
  // The text ends here: appends the least that makes `out` a value.
  void complete(std::string& out);
  // Nothing but closing brackets is missing.
  [[nodiscard]] bool lacks_only_brackets() const;
  // What was read and not written yet, but for a comma.
  [[nodiscard]] std::string unwritten() const;
  // Within an escape, or between the halves of a surrogate pair.
  [[nodiscard]] bool is_within_escape() const;

 private:
  enum class State {
    kValue,
    kKeyOrClose,
    kColon,
    kCommaOrClose,
    kQuote,  // within Gemma's opening quote
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
  bool first_ = true;   // nothing stands in the innermost bracket yet
  bool comma_ = false;  // a comma was read and not written: a bracket may follow
  std::string space_;   // after that comma
  char quote_ = '"';
  std::string token_;
  std::uint32_t high_surrogate_ = 0;  // read and not written: its other half may follow
};

// Whether this text is one JSON value by the rules above; then appends it to `out`.
[[nodiscard]] bool append_json_value(std::string_view text, std::string& out);
// Appends the text's bytes as they stand within a string of JSON.
void append_json_escaped(std::string_view text, std::string& out);
void append_json_string(std::string_view text, std::string& out);
// What a string of strict JSON says; `text` is what stands between the quotes.
[[nodiscard]] std::string json_unescaped(std::string_view text);

}  // namespace slipstream
