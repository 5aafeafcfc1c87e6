// Scheme: how many bits keys and values get, in which layers it is otherwise, and how many tokens a
// query reads.
//
//   turbo4          4-bit keys and values          turbo8v4   8-bit keys, 4-bit values
//   turbo0v4        keys stay f16                  f16        nothing is compressed
//   turbo<K>v<V>    any widths of 0, 2, 3, 4 and 8 bits, where 0 stays f16
//   turbo4,0-1=turbo8,27=turbo8v4                  the first two layers and layer 27 otherwise
//   turbo4,attend=4096                             a query reads at most 4,096 tokens
//
// Threads: immutable.
// Errors:  parse_scheme: kInvalidArgument. The message lists the names.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipstream::turbo {

// The schemes that people choose among, best known first. Any other pair of widths is one too.
inline constexpr std::array<std::string_view, 10> kSchemeNames = {
    "turbo8v4", "turbo8",   "turbo4", "turbo3",   "turbo8v3",
    "turbo4v3", "turbo4v2", "turbo2", "turbo0v4", "turbo0v0",
};

// The width of a code.
constexpr bool is_code_bits(int bits) { return (bits >= 2 && bits <= 4) || bits == 8; }

// The fewest tokens that a query can be limited to: the chunks that it always reads, and a few that
// it chooses (device/attention/chunk_choice.h).
inline constexpr std::int64_t kAttendMin = 512;

struct Bits {
  int keys = 0;  // 0: stays as it is
  int values = 0;
  bool operator==(const Bits&) const = default;
};

class Scheme {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Bits bits() const { return bits_; }  // of a layer that no range names
  [[nodiscard]] Bits bits_of_layer(int layer) const {
    for (const Override& other : std::views::reverse(overrides_)) {  // the last one named wins
      if (other.first_layer <= layer && layer <= other.last_layer) return other.bits;
    }
    return bits_;
  }
  // The most tokens that a query reads, those that it needs most; 0: it reads all.
  [[nodiscard]] std::int64_t attend() const { return attend_; }

 private:
  friend Result<Scheme> parse_scheme(std::string_view text);
  struct Override {
    int first_layer;
    int last_layer;
    Bits bits;
  };
  std::string name_ = "f16";
  Bits bits_;
  std::vector<Override> overrides_;
  std::int64_t attend_ = 0;
};

// Whether a query reads a part of the layer's tokens only. Keys that are not compressed have no
// signs to choose by.
inline bool is_limited(const Scheme& scheme, int layer) {
  return scheme.attend() != 0 && scheme.bits_of_layer(layer).keys != 0;
}

namespace scheme_grammar {

inline std::optional<int> parse_width(std::string_view text) {
  if (text.size() != 1) return std::nullopt;
  const int width = text[0] - '0';
  return width == 0 || is_code_bits(width) ? std::optional(width) : std::nullopt;
}

// "turbo8", "turbo8v4"
inline std::optional<Bits> parse_bits(std::string_view name) {
  if (name == "f16") return Bits{};
  constexpr std::string_view kPrefix = "turbo";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const std::size_t v = name.find('v');
  const std::optional<int> keys = parse_width(name.substr(0, v));
  const std::optional<int> values =
      v == std::string_view::npos ? keys : parse_width(name.substr(v + 1));
  if (!keys || !values) return std::nullopt;
  return Bits{.keys = *keys, .values = *values};
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

inline std::unexpected<Error> fail(std::initializer_list<std::string_view> parts) {
  std::string message;
  for (const std::string_view part : parts) message += part;
  return slipstream::fail(Code::kInvalidArgument, std::move(message));
}

inline std::unexpected<Error> no_scheme(std::string_view name) {
  std::string names;
  for (const std::string_view one : kSchemeNames) (names += one) += ", ";
  return fail({"there is no scheme '", name, "'; there are ", names, "f16"});
}

}  // namespace scheme_grammar

[[nodiscard]] inline Result<Scheme> parse_scheme(std::string_view text) {
  namespace grammar = scheme_grammar;
  Scheme scheme;
  scheme.name_ = text;
  const std::string_view first = text.substr(0, text.find(','));
  const std::optional<Bits> bits = grammar::parse_bits(first);
  if (!bits) return grammar::no_scheme(first);
  scheme.bits_ = *bits;
  for (const auto part_range : std::views::split(text, ',') | std::views::drop(1)) {
    const std::string_view part(part_range);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return grammar::fail(
          {"'", part, "' names no layers: write LAYER=SCHEME or FIRST-LAST=SCHEME"});
    }
    const std::string_view name = part.substr(equals + 1);
    if (part.substr(0, equals) == "attend") {
      const std::optional<std::int64_t> attend = grammar::parse_number<std::int64_t>(name);
      if (!attend || *attend < kAttendMin || bits->keys == 0) {
        return grammar::fail({"'", part, "': write a number of tokens from 512 on, ",
                              "with a scheme that compresses keys"});
      }
      scheme.attend_ = *attend;
      continue;
    }
    const std::optional<Bits> others = grammar::parse_bits(name);
    if (!others) return grammar::no_scheme(name);
    const std::string_view range = part.substr(0, equals);
    const std::size_t dash = range.find('-');
    const std::optional<int> begin = grammar::parse_number<int>(range.substr(0, dash));
    const std::optional<int> end =
        dash == std::string_view::npos ? begin : grammar::parse_number<int>(range.substr(dash + 1));
    if (!begin || !end || *begin > *end) {
      return grammar::fail({"'", range, "' is not a range of layers"});
    }
    scheme.overrides_.push_back({*begin, *end, *others});
  }
  return scheme;
}

}  // namespace slipstream::turbo
