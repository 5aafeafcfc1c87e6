#include "server/output/json_reader.h"

#include <cmath>
#include <cstdlib>

#include "base/format.h"
#include "server/ascii.h"
#include "server/output/output_limits.h"

namespace slipstream {
namespace {

constexpr std::string_view kGemmaQuote = "<|\"|>";
constexpr std::string_view kReplacement = "\\ufffd";
constexpr std::size_t kWordBytesMax = 512;

bool is_word_byte(char byte) {
  return is_name_byte(byte) || byte == '+' || byte == '.' || byte == '-';
}

std::size_t skip_digits(std::string_view text, std::size_t i) {
  while (i < text.size() && is_digit(text[i])) ++i;
  return i;
}

// The number as JSON spells it, or "": "+1", ".5" and "5." are accepted, "007" and "1e999" are not.
std::string json_number(std::string_view text) {
  std::string number;
  std::size_t i = 0;
  if (text.starts_with('-')) number = "-";
  if (text.starts_with('-') || text.starts_with('+')) ++i;
  const std::size_t whole_end = skip_digits(text, i);
  std::string whole(text.substr(i, whole_end - i));
  std::string fraction;
  i = whole_end;
  if (i < text.size() && text[i] == '.') {
    const std::size_t end = skip_digits(text, i + 1);
    fraction = text.substr(i + 1, end - i - 1);
    if (whole.empty() && fraction.empty()) return "";
    if (whole.empty()) whole = "0";
    if (fraction.empty()) fraction = "0";
    i = end;
  }
  if (whole.empty() || (whole.size() > 1 && whole[0] == '0')) return "";
  number += whole;
  if (!fraction.empty()) number += "." + fraction;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t digits = i + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    const std::size_t end = skip_digits(text, digits);
    if (end == digits) return "";
    number += text.substr(i, end - i);
    i = end;
  }
  if (i != text.size() || !std::isfinite(std::strtod(number.c_str(), nullptr))) return "";
  return number;
}

void append_utf8(char32_t code_point, std::string& out) {
  const auto low_bits = [&](unsigned shift) {
    return static_cast<char>(0x80 | ((code_point >> shift) & 0x3F));
  };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += {static_cast<char>(0xC0 | (code_point >> 6)), low_bits(0)};
  } else if (code_point < 0x10000) {
    out += {static_cast<char>(0xE0 | (code_point >> 12)), low_bits(6), low_bits(0)};
  } else {
    out += {static_cast<char>(0xF0 | (code_point >> 18)), low_bits(12), low_bits(6), low_bits(0)};
  }
}

}  // namespace

JsonReader::Step JsonReader::push(char byte, std::string& out) {
  switch (state_) {
    case State::kValue: return push_value(byte, out);
    case State::kKeyOrClose: return push_key(byte, out);
    case State::kColon:
      if (is_space(byte)) {
        out += byte;
        return Step::kTaken;
      }
      if (byte != ':') return Step::kFailed;
      out += byte;
      state_ = State::kValue;
      return Step::kTaken;
    case State::kCommaOrClose: return push_comma_or_close(byte, out);
    case State::kQuote: return push_quote(byte, out);
    case State::kString: return push_string(byte, out);
    case State::kEscape: return push_escape(byte, out);
    case State::kHex: return push_hex(byte, out);
    case State::kWord: return push_word(byte, out);
  }
  return Step::kFailed;
}

JsonReader::Step JsonReader::push_value(char byte, std::string& out) {
  if (is_space(byte)) {
    if (comma_) {
      if (space_.size() < kOutputLimits.held_space_bytes_max) space_ += byte;
    } else {
      out += byte;
    }
    return Step::kTaken;
  }
  if (byte == ']' && open_.ends_with('[') && (first_ || comma_)) return close(byte, out);
  is_key_ = false;
  if (byte == '{' || byte == '[') return open(byte, out);
  if (quotes_ == Quotes::kGemma && byte == kGemmaQuote[0]) {
    token_ = byte;
    state_ = State::kQuote;
    return Step::kTaken;
  }
  if (byte == '"' || byte == '\'') {
    begin_string(byte, out);
    return Step::kTaken;
  }
  if (!is_word_byte(byte)) return Step::kFailed;
  token_ = byte;
  state_ = State::kWord;
  return Step::kTaken;
}

JsonReader::Step JsonReader::push_key(char byte, std::string& out) {
  if (byte == '}' && (first_ || comma_)) return close(byte, out);
  if (is_space(byte)) return push_value(byte, out);
  is_key_ = true;
  if (quotes_ == Quotes::kGemma && byte == kGemmaQuote[0]) {
    token_ = byte;
    state_ = State::kQuote;
    return Step::kTaken;
  }
  if (byte == '"' || byte == '\'') {
    begin_string(byte, out);
    return Step::kTaken;
  }
  if (!is_name_byte(byte) || is_digit(byte)) return Step::kFailed;
  token_ = byte;
  state_ = State::kWord;
  return Step::kTaken;
}

JsonReader::Step JsonReader::push_comma_or_close(char byte, std::string& out) {
  if (is_space(byte)) {
    out += byte;
    return Step::kTaken;
  }
  if (byte == ',') {
    comma_ = true;
    state_ = open_.ends_with('{') ? State::kKeyOrClose : State::kValue;
    return Step::kTaken;
  }
  return close(byte, out);
}

JsonReader::Step JsonReader::push_quote(char byte, std::string& out) {
  token_ += byte;
  if (!kGemmaQuote.starts_with(token_)) return Step::kFailed;
  if (token_ == kGemmaQuote) begin_string('<', out);
  return Step::kTaken;
}

JsonReader::Step JsonReader::push_string(char byte, std::string& out) {
  if (quote_ == '<') {  // token_ holds a possible closing quote
    token_ += byte;
    if (token_ == kGemmaQuote) return end_string(out);
    while (!kGemmaQuote.starts_with(token_)) {
      push_string_byte(token_[0], out);
      token_.erase(0, 1);
    }
    return Step::kTaken;
  }
  if (byte == '\\') {
    state_ = State::kEscape;
    return Step::kTaken;
  }
  write_lone_surrogate(out);
  if (byte == quote_) return end_string(out);
  push_string_byte(byte, out);
  return Step::kTaken;
}

void JsonReader::push_string_byte(char byte, std::string& out) {
  append_json_escaped({&byte, 1}, out);
}

JsonReader::Step JsonReader::push_escape(char byte, std::string& out) {
  if (byte == 'u') {
    token_.clear();
    state_ = State::kHex;
    return Step::kTaken;
  }
  write_lone_surrogate(out);
  state_ = State::kString;
  if (byte == '\'') {
    out += byte;
  } else if (std::string_view("\"\\/bfnrt").contains(byte)) {
    out += '\\';
    out += byte;
  } else {  // as in a regular expression: the backslash is literal
    out += "\\\\";
    push_string_byte(byte, out);
  }
  return Step::kTaken;
}

JsonReader::Step JsonReader::push_hex(char byte, std::string& out) {
  if (!is_hex_digit(byte)) {  // not an escape: the backslash is literal
    write_lone_surrogate(out);
    out += "\\\\u" + token_;
    token_.clear();
    state_ = State::kString;
    return push_string(byte, out);
  }
  token_ += byte;
  if (token_.size() < 4) return Step::kTaken;
  const auto unit = static_cast<std::uint32_t>(std::strtoul(token_.c_str(), nullptr, 16));
  const bool is_low = unit >= 0xDC00 && unit <= 0xDFFF;
  if (high_surrogate_ != 0 && is_low) {
    out += format_text("\\u{:04x}\\u{:04x}", high_surrogate_, unit);
    high_surrogate_ = 0;
  } else {
    write_lone_surrogate(out);
    if (unit >= 0xD800 && unit <= 0xDBFF) {
      high_surrogate_ = unit;
    } else {
      out += is_low ? std::string(kReplacement) : "\\u" + token_;
    }
  }
  token_.clear();
  state_ = State::kString;
  return Step::kTaken;
}

JsonReader::Step JsonReader::push_word(char byte, std::string& out) {
  if (is_word_byte(byte)) {
    if (token_.size() >= kWordBytesMax) return Step::kFailed;
    token_ += byte;
    return Step::kTaken;
  }
  if (is_key_) {
    write_comma(out);
    append_json_string(token_, out);
    state_ = State::kColon;
    return push(byte, out);
  }
  if (!write_word(out)) return Step::kFailed;
  comma_ = false;
  space_.clear();
  if (end_value() == Step::kDone) return Step::kDoneBefore;
  return push(byte, out);
}

JsonReader::Step JsonReader::open(char bracket, std::string& out) {
  if (open_.size() >= kOutputLimits.call_nesting_max) return Step::kFailed;
  write_comma(out);
  out += bracket;
  open_ += bracket;
  first_ = true;
  state_ = bracket == '{' ? State::kKeyOrClose : State::kValue;
  return Step::kTaken;
}

JsonReader::Step JsonReader::close(char bracket, std::string& out) {
  const bool matches = !open_.empty() && bracket == (open_.back() == '{' ? '}' : ']');
  if (!matches) return Step::kFailed;
  out += space_;  // the comma before it is dropped
  space_.clear();
  comma_ = false;
  out += bracket;
  open_.pop_back();
  return end_value();
}

void JsonReader::begin_string(char quote, std::string& out) {
  write_comma(out);
  out += '"';
  quote_ = quote;
  token_.clear();
  state_ = State::kString;
}

JsonReader::Step JsonReader::end_string(std::string& out) {
  out += '"';
  token_.clear();
  if (!is_key_) return end_value();
  state_ = State::kColon;
  return Step::kTaken;
}

JsonReader::Step JsonReader::end_value() {
  first_ = false;
  if (open_.empty()) return Step::kDone;
  state_ = State::kCommaOrClose;
  return Step::kTaken;
}

bool JsonReader::write_word(std::string& out) const {
  std::string word;
  if (token_ == "true" || token_ == "True") word = "true";
  if (token_ == "false" || token_ == "False") word = "false";
  if (token_ == "null" || token_ == "None") word = "null";
  if (word.empty()) word = json_number(token_);
  if (word.empty()) return false;
  if (comma_) out += "," + space_;
  out += word;
  return true;
}

void JsonReader::write_comma(std::string& out) {
  if (comma_) out += "," + space_;
  comma_ = false;
  space_.clear();
  first_ = false;
}

void JsonReader::write_lone_surrogate(std::string& out) {
  if (high_surrogate_ != 0) out += kReplacement;
  high_surrogate_ = 0;
}

bool JsonReader::lacks_only_brackets() const {
  return state_ == State::kCommaOrClose && !open_.empty();
}

std::string JsonReader::unwritten() const {
  if (state_ == State::kEscape) return "\\";
  if (state_ == State::kHex) return "\\u" + token_;
  return state_ == State::kWord || state_ == State::kQuote || state_ == State::kString ? token_
                                                                                       : "";
}

bool JsonReader::is_within_escape() const {
  return state_ == State::kEscape || state_ == State::kHex || high_surrogate_ != 0;
}

void JsonReader::complete(std::string& out) {
  const bool is_member = open_.ends_with('{');
  switch (state_) {
    case State::kString:
    case State::kEscape:
    case State::kHex:
      write_lone_surrogate(out);
      out += is_key_ ? "\":null" : "\"";
      break;
    case State::kColon: out += ":null"; break;
    case State::kWord:
      if (is_key_) {
        write_comma(out);
        append_json_string(token_, out);
        out += ":null";
      } else if (!write_word(out) && (is_member || open_.empty())) {
        out += "null";
      }
      break;
    case State::kQuote:
      if (is_member && !is_key_) out += "null";
      break;
    case State::kValue:
      if (is_member || open_.empty()) out += "null";
      break;
    case State::kKeyOrClose:
    case State::kCommaOrClose: break;
  }
  for (; !open_.empty(); open_.pop_back()) out += open_.back() == '{' ? '}' : ']';
}

bool append_json_value(std::string_view text, std::string& out) {
  JsonReader reader;
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const JsonReader::Step step = reader.push(text[i], value);
    if (step == JsonReader::Step::kTaken) continue;
    if (step != JsonReader::Step::kDone || i + 1 != text.size()) return false;
    out += value;
    return true;
  }
  // A number or word ends with the text. A space makes the reader end it.
  if (reader.push(' ', value) != JsonReader::Step::kDoneBefore) return false;
  out += value;
  return true;
}

void append_json_escaped(std::string_view text, std::string& out) {
  for (const char byte : text) {
    switch (byte) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(byte) < 0x20) {
          out += format_text("\\u{:04x}", static_cast<unsigned>(byte));
        } else {
          out += byte;
        }
    }
  }
}

std::string json_unescaped(std::string_view text) {
  std::string said;
  char32_t high = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      said += text[i];
      continue;
    }
    const char escape = text[++i];
    constexpr std::string_view kEscapes = "bfnrt";
    constexpr std::string_view kMeanings = "\b\f\n\r\t";
    if (escape == 'u' && i + 4 < text.size()) {
      const std::string digits(text.substr(i + 1, 4));
      i += 4;
      const auto unit = static_cast<char32_t>(std::strtoul(digits.c_str(), nullptr, 16));
      if (unit >= 0xD800 && unit <= 0xDBFF) {
        high = unit;
      } else {
        const bool is_low = unit >= 0xDC00 && unit <= 0xDFFF;
        append_utf8(is_low ? 0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00) : unit, said);
      }
    } else if (const std::size_t idx = kEscapes.find(escape); idx != kEscapes.npos) {
      said += kMeanings[idx];
    } else {
      said += escape;
    }
  }
  return said;
}

void append_json_string(std::string_view text, std::string& out) {
  out += '"';
  append_json_escaped(text, out);
  out += '"';
}

}  // namespace slipstream
