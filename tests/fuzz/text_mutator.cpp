// A mutator for libFuzzer that knows how text is made to hurt: values that nest, members and
// elements by the thousand, JSON inside strings of JSON, long runs. It looks for brackets, commas
// and quotes rather than for valid JSON, so that templates, grammars and the calls that models
// write are changed as well. Most inputs stay small, or few would be tried; one in a hundred may
// have as much as libFuzzer allows.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t n_bytes,
                                        std::size_t n_bytes_max);

namespace {

using Random = std::minstd_rand;

struct Part {
  std::size_t begin;
  std::size_t end;  // behind its last byte
};

std::size_t below(Random& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

// 1 to n, small numbers as often as large ones.
std::size_t spread(Random& random, std::size_t n) {
  std::size_t bits = 0;
  while (bits < 20 && (std::size_t{2} << bits) <= n) ++bits;
  return std::min(n, 1 + below(random, std::size_t{1} << below(random, bits + 2)));
}

bool opens(char c) { return c == '{' || c == '[' || c == '('; }
bool closes(char c) { return c == '}' || c == ']' || c == ')'; }

// The end of the quoted text that begins there; none: it has none.
std::optional<std::size_t> end_of_string(std::string_view text, std::size_t begin) {
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return std::nullopt;
}

// From a bracket to the one that closes it; what is in quotes is no bracket.
std::optional<std::size_t> end_of_group(std::string_view text, std::size_t begin) {
  std::size_t depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '"') {
      const auto end = end_of_string(text, i);
      if (!end) return std::nullopt;
      i = *end - 1;
    } else if (opens(text[i])) {
      ++depth;
    } else if (closes(text[i]) && --depth == 0) {
      return i + 1;
    }
  }
  return std::nullopt;
}

std::optional<Part> find_group(std::string_view text, Random& random) {
  const std::size_t start = below(random, text.size());
  for (const Part range : {Part{start, text.size()}, Part{0, start}}) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      if (!opens(text[i])) continue;
      if (const auto end = end_of_group(text, i)) return Part{i, *end};
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<Part> find_string(std::string_view text, Random& random) {
  const std::size_t start = below(random, text.size());
  std::optional<Part> found;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '"') continue;
    const auto end = end_of_string(text, i);
    if (!end) break;
    found = Part{i, *end};
    if (*end > start) break;
    i = *end - 1;
  }
  return found;
}

// A value: a group, a string, or the word between two separators.
std::optional<Part> find_value(std::string_view text, Random& random) {
  switch (below(random, 3)) {
    case 0: return find_group(text, random);
    case 1: return find_string(text, random);
    default: break;
  }
  if (text.empty()) return std::nullopt;
  constexpr std::string_view kEnds = "{}[](),:\"\n ";
  const std::size_t at = below(random, text.size());
  const std::size_t before = text.find_last_of(kEnds, at);
  const std::size_t begin = before == text.npos ? 0 : before + 1;
  return Part{begin, std::max(begin, std::min(text.size(), text.find_first_of(kEnds, begin)))};
}

// An element or member, from behind a comma or bracket to the next on the same level.
std::optional<Part> find_member(std::string_view text, Random& random) {
  const auto group = find_group(text, random);
  if (!group) return std::nullopt;
  std::size_t begin = group->begin + 1;
  const std::size_t wanted = begin + below(random, group->end - begin);
  for (std::size_t i = begin; i < group->end; ++i) {
    if (text[i] == '"' || opens(text[i])) {
      const auto end = text[i] == '"' ? end_of_string(text, i) : end_of_group(text, i);
      if (!end) return std::nullopt;
      i = *end - 1;
    } else if (text[i] == ',' || i + 1 == group->end) {
      if (i >= wanted || i + 1 == group->end) return Part{begin, i};
      begin = i + 1;
    }
  }
  return std::nullopt;
}

std::string escaped(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\\' && i + 2 < text.size()) {
      ++i;
      result += text[i] == 'n' ? '\n' : text[i];
    } else {
      result += text[i];
    }
  }
  return result;
}

void put(std::string& text, Part part, std::string_view instead) {
  text.replace(part.begin, part.end - part.begin, instead);
}

// --- what is done to a text; `room` is how much longer it may become

void nest(std::string& text, std::size_t room, Random& random) {
  constexpr std::array<std::array<std::string_view, 2>, 7> kShells = {
      {{"[", "]"},
       {"{\"a\":", "}"},
       {"(", ")"},
       {"{", "}"},
       {"{\"items\":", "}"},
       {"{\"properties\":{\"a\":", "}}"},
       {"{\"anyOf\":[", "]}"}}};
  const auto& shell = kShells[below(random, kShells.size())];
  const auto value = find_value(text, random);
  if (!value) return;
  const std::size_t n = spread(random, room / (shell[0].size() + shell[1].size()));
  std::string nested;
  for (std::size_t i = 0; i < n; ++i) nested += shell[0];
  nested.append(text, value->begin, value->end - value->begin);
  if (below(random, 8) == 0) return put(text, *value, nested);  // and never closed
  for (std::size_t i = 0; i < n; ++i) nested += shell[1];
  put(text, *value, nested);
}

void repeat(std::string& text, std::size_t room, Random& random) {
  const auto member = find_member(text, random);
  if (!member || member->begin == member->end) return;
  const std::string once = text.substr(member->begin, member->end - member->begin);
  const std::size_t n = spread(random, room / (once.size() + 8));
  // With names of their own, or they are one member.
  const bool counts = below(random, 2) == 0 && once.find('"') != once.npos;
  std::string all = once;
  for (std::size_t i = 0; i < n; ++i) {
    std::string next = once;
    if (counts) next.insert(next.find('"') + 1, std::to_string(i));
    all += ',' + next;
  }
  put(text, *member, all);
}

void insert_run(std::string& text, std::size_t room, Random& random) {
  constexpr std::array<std::string_view, 20> kPieces = {
      "a", " ", "0",        "\\",           "\"",   "\\\"",     "\n",      "[",       "{", "(",
      "<", "-", "\xCC\x81", "\xE4\xBD\xA0", "\xFF", "\xF0\x9F", "\\u0000", "\\ud800", "|", "*"};
  const std::string_view piece = kPieces[below(random, kPieces.size())];
  std::string run;
  for (std::size_t n = spread(random, room / piece.size()); n > 0; --n) run += piece;
  const auto string = below(random, 2) == 0 ? find_string(text, random) : std::nullopt;
  text.insert(string ? string->begin + 1 : below(random, text.size() + 1), run);
}

void quote(std::string& text, std::size_t room, Random& random) {
  const auto group = find_group(text, random);
  if (!group) return;
  const std::string inside =
      escaped(std::string_view(text).substr(group->begin, group->end - group->begin));
  if (inside.size() <= group->end - group->begin + room) put(text, *group, inside);
}

void mutate(std::string& text, std::size_t n_bytes_max, Random& random, int depth);

// What a string holds is changed as a text of its own.
void change_inside(std::string& text, std::size_t room, Random& random, int depth) {
  const auto string = find_string(text, random);
  if (!string || depth > 3) return;
  std::string inside =
      unescaped(std::string_view(text).substr(string->begin, string->end - string->begin));
  if (below(random, 8) == 0) return put(text, *string, inside);
  mutate(inside, inside.size() + room / 2, random, depth + 1);
  const std::string instead = escaped(inside);
  if (instead.size() <= string->end - string->begin + room) put(text, *string, instead);
}

void remove_part(std::string& text, Random& random) {
  const auto part = below(random, 2) == 0 ? find_value(text, random) : find_member(text, random);
  if (part) put(text, *part, "");
}

void mutate(std::string& text, std::size_t n_bytes_max, Random& random, int depth) {
  const std::size_t room = n_bytes_max - std::min(n_bytes_max, text.size());
  switch (below(random, 8)) {
    case 0:
    case 1: return nest(text, room, random);
    case 2:
    case 3: return repeat(text, room, random);
    case 4: return insert_run(text, room, random);
    case 5: return quote(text, room, random);
    case 6: return change_inside(text, room, random, depth);
    default: return remove_part(text, random);
  }
}

std::size_t size_limit(std::size_t n_bytes_max, Random& random) {
  const std::size_t dice = below(random, 200);
  if (dice < 2) return n_bytes_max;
  return std::min<std::size_t>(n_bytes_max, dice < 10 ? 65536 : 4096);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t n_bytes,
                                               std::size_t n_bytes_max, unsigned seed) {
  Random random(seed);
  const std::size_t limit = size_limit(n_bytes_max, random);
  // A large one is worked on seldom: what it led to is smaller as well.
  const std::size_t n_kept = std::min(n_bytes, limit);
  if (below(random, 2) == 0) return LLVMFuzzerMutate(data, n_kept, limit);
  std::string text(reinterpret_cast<const char*>(data), n_kept);
  for (std::size_t n = 1 + below(random, 3); n > 0; --n) mutate(text, limit, random, 0);
  if (text.size() > n_bytes_max) text.resize(n_bytes_max);
  if (text.empty()) return LLVMFuzzerMutate(data, n_kept, limit);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
