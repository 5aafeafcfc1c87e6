#include "server/template/jinja/text_functions.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/format.h"
#include "engine/text/text_limits.h"
#include "server/ascii.h"
#include "server/template/jinja/arguments.h"

namespace slipstream::jinja {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

std::string map_bytes(std::string text, char (*change)(char, bool), Budget& budget) {
  budget.step(text.size() / 16);
  bool starts_word = true;
  for (char& byte : text) {
    const char old = byte;
    byte = change(byte, starts_word);
    starts_word = !is_name_byte(old) && static_cast<unsigned char>(old) < 0x80;
  }
  return text;
}

char to_upper(char byte, bool) {
  return byte >= 'a' && byte <= 'z' ? static_cast<char>(byte - 32) : byte;
}

char to_lower(char byte, bool) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte;
}

char to_title(char byte, bool starts_word) {
  return starts_word ? to_upper(byte, false) : to_lower(byte, false);
}

// `change` keeps the length of the text.
MarkedText map_ascii(const MarkedText& text, char (*change)(char, bool), Budget& budget) {
  return text.with_text(map_bytes(text.text(), change, budget));
}

// There is no memrmem(), so the bytes that are compared are charged.
std::size_t rfind_in(std::string_view text, std::string_view part, Budget& budget) {
  for (std::size_t at = text.rfind(part[0]); at != text.npos; at = text.rfind(part[0], at - 1)) {
    budget.step(1 + part.size() / 32);
    if (text.substr(at).starts_with(part)) return at;
    if (at == 0) break;
  }
  return text.npos;
}

std::vector<Value> split_words(const MarkedText& marked, Budget& budget) {
  const std::string_view text = marked.text();
  std::vector<Value> words;
  for (std::size_t i = 0; i < text.size();) {
    if (is_space(text[i])) {
      ++i;
      continue;
    }
    const std::size_t start = i;
    while (i < text.size() && !is_space(text[i])) ++i;
    words.push_back(Value::text(marked.slice(start, i), &budget));
  }
  return words;
}

// Splits at most `max` times; without a limit if `max` is negative.
std::vector<Value> split_at(const MarkedText& marked, std::string_view separator, std::int64_t max,
                            bool from_right, Budget& budget) {
  std::string_view text = marked.text();
  std::vector<Value> parts;
  const auto add = [&](std::string_view part) {
    budget.step();
    parts.push_back(Value::text(marked.slice(part), &budget));
  };
  while (max < 0 || static_cast<std::int64_t>(parts.size()) < max) {
    budget.step(1 + separator.size() / 32);
    const std::size_t at =
        from_right ? rfind_in(text, separator, budget) : find_in(text, separator);
    if (at == text.npos) break;
    const std::string_view before = text.substr(0, at);
    const std::string_view after = text.substr(at + separator.size());
    add(from_right ? after : before);
    text = from_right ? before : after;
  }
  add(text);
  if (from_right) std::ranges::reverse(parts);
  return parts;
}

}  // namespace

// glibc's memmem() takes linear time. std::string_view's find() takes the product of both lengths
// if every position nearly matches.
std::size_t find_in(std::string_view text, std::string_view part) {
  if (part.empty()) return 0;
  const void* found = memmem(text.data(), text.size(), part.data(), part.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::int64_t n_characters(std::string_view text, Budget& budget) {
  budget.step(text.size() / 16);
  return std::ranges::count_if(text, [](char byte) { return !is_continuation(byte); });
}

MarkedText upper(const MarkedText& text, Budget& budget) {
  return map_ascii(text, to_upper, budget);
}
MarkedText lower(const MarkedText& text, Budget& budget) {
  return map_ascii(text, to_lower, budget);
}
std::string lower_bytes(std::string text, Budget& budget) {
  return map_bytes(std::move(text), to_lower, budget);
}
MarkedText title(const MarkedText& text, Budget& budget) {
  return map_ascii(text, to_title, budget);
}
MarkedText capitalize(const MarkedText& text, Budget& budget) {
  std::string lower = map_bytes(text.text(), to_lower, budget);
  if (!lower.empty()) lower[0] = to_upper(lower[0], true);
  return text.with_text(std::move(lower));
}

MarkedText strip(const MarkedText& marked, const Value* set, bool left, bool right,
                 Budget& budget) {
  std::string_view text = marked.text();
  const std::string chars = text_or(set, " \n\r\t\f\v");
  budget.step(text.size() / 64 * (1 + chars.size() / 64));
  // The first or last character, which may be several bytes.
  const auto first = [](std::string_view rest) {
    std::size_t n = 1;
    while (n < rest.size() && is_continuation(rest[n])) ++n;
    return rest.substr(0, n);
  };
  const auto last = [](std::string_view rest) {
    std::size_t n = 1;
    while (n < rest.size() && is_continuation(rest[rest.size() - n])) ++n;
    return rest.substr(rest.size() - n);
  };
  while (left && !text.empty() && chars.contains(first(text)))
    text.remove_prefix(first(text).size());
  while (right && !text.empty() && chars.contains(last(text)))
    text.remove_suffix(last(text).size());
  return marked.slice(text);
}

Value split(const MarkedText& text, const Arguments& arguments, bool from_right, Budget& budget) {
  budget.step(1 + text.size() / 8);
  const Value* separator = arguments.find(0, "sep");
  const std::int64_t max = int_or(arguments.find(1, "maxsplit"), -1);
  if (separator == nullptr || separator->is_none()) {
    if (max >= 0) fail("split() with a limit needs a separator");
    return Value::list(split_words(text, budget), budget);
  }
  if (expect_text(*separator, "split()").empty())
    fail("split() needs a separator that is not empty");
  return Value::list(split_at(text, *separator->text(), max, from_right, budget), budget);
}

Value split_lines(const MarkedText& text, Budget& budget) {
  const bool ends_line = text.text().ends_with('\n');
  const MarkedText lines = text.slice(0, text.size() - (ends_line ? 1 : 0));
  return Value::list(split_at(lines, "\n", -1, false, budget), budget);
}

MarkedText replace(const MarkedText& marked, const Arguments& arguments, Budget& budget) {
  const std::string from = text_or(arguments.find(0, "old"), "");
  const MarkedText to = marked_or_empty(arguments.find(1, "new"));
  std::int64_t n_left = int_or(arguments.find(2, "count"), -1);
  if (from.empty()) fail("replace() needs a text that is not empty");
  budget.step(1 + marked.size() / 8);
  const std::string_view text = marked.text();
  MarkedText result;
  std::size_t start = 0;
  for (; n_left != 0; --n_left) {
    const std::size_t found = find_in(text.substr(start), from);
    if (found == text.npos) break;
    budget.step(1 + from.size() / 32);
    result.append(marked, start, start + found);
    result.append(to);
    if (result.size() > kTextLimits.text_bytes_max) throw TemplateError{"a text is too long", true};
    start += found + from.size();
  }
  result.append(marked, start, text.size());
  return result;
}

MarkedText fill_in(const MarkedText& marked, const Arguments& arguments, Budget& budget) {
  const std::string_view text = marked.text();
  MarkedText result;
  std::size_t n_used = 0;
  std::size_t start = 0;  // of the text that is copied unchanged
  for (std::size_t i = 0; i < text.size(); ++i) {
    budget.step();
    const bool is_doubled = i + 1 < text.size() && text[i + 1] == text[i];
    if ((text[i] == '{' || text[i] == '}') && is_doubled) {
      result.append(marked, start, ++i);
      start = i + 1;
      continue;
    }
    if (text[i] != '{') continue;
    result.append(marked, start, i);
    const std::size_t end = text.find('}', i);
    if (end == text.npos) fail("format(): '}' is missing");
    const std::string_view field = text.substr(i + 1, end - i - 1);
    const bool is_number = field.size() == 1 && is_digit(field[0]);
    const std::size_t idx = is_number       ? static_cast<std::size_t>(field[0] - '0')
                            : field.empty() ? n_used++
                                            : std::size_t{1} << 30;
    const Value* value = arguments.find(idx, field);
    if (value == nullptr) fail(format_text("format(): nothing for '{{{}}}'", field));
    result.append(to_text(*value, budget));
    if (result.size() > kTextLimits.text_bytes_max) throw TemplateError{"a text is too long", true};
    i = end;
    start = end + 1;
  }
  result.append(marked, start, text.size());
  return result;
}

MarkedText indent(const MarkedText& text, const Arguments& arguments, Budget& budget) {
  const std::int64_t width = int_or(arguments.find(0, "width"), 4);
  const bool first = bool_or(arguments.find(1, "first"), false);
  const bool blank = bool_or(arguments.find(2, "blank"), false);
  if (width < 0 || width > 256) fail("indent() by at most 256");
  const std::string spaces(static_cast<std::size_t>(width), ' ');
  budget.step(text.size() / 4);
  const std::string& bytes = text.text();
  MarkedText result;
  if (first) result.append(spaces, Origin::kTemplate);
  for (std::size_t start = 0; start < bytes.size();) {
    const std::size_t line_feed = bytes.find('\n', start);
    const std::size_t end = line_feed == bytes.npos ? bytes.size() : line_feed + 1;
    result.append(text, start, end);
    const bool is_blank = end >= bytes.size() || bytes[end] == '\n';
    if (line_feed != bytes.npos && (!is_blank || blank)) result.append(spaces, Origin::kTemplate);
    if (result.size() > kTextLimits.text_bytes_max) throw TemplateError{"a text is too long", true};
    start = end;
  }
  return result;
}

}  // namespace slipstream::jinja
