#include "device/codec/scheme.h"

#include <array>
#include <charconv>
#include <optional>
#include <ranges>

#include "base/format.h"
#include "device/codec/vector_codec.h"

namespace slipstream::turbo {
namespace {

// Those that have been measured (docs/quality.md), for errors. Any other pair of widths is a scheme
// too: keys and values are coded apart.
constexpr std::array<std::string_view, 8> kWellKnown = {
    "turbo8", "turbo8v4", "turbo8v3", "turbo4", "turbo4v3", "turbo3", "turbo0v4", "f16"};

std::optional<int> parse_width(std::string_view text) {
  if (text.size() != 1) return std::nullopt;
  const int width = text[0] - '0';
  return width == 0 || is_code_bits(width) ? std::optional(width) : std::nullopt;
}

// "turbo8", "turbo8v4"
std::optional<Bits> find_bits(std::string_view name) {
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

std::string all_names() {
  std::string names;
  for (const std::string_view name : kWellKnown) {
    names += format_text("{}{}", names.empty() ? "" : ", ", name);
  }
  return names;
}

std::optional<int> parse_layer(std::string_view text) {
  int layer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layer);
  if (error != std::errc() || end != text.data() + text.size() || layer < 0) return std::nullopt;
  return layer;
}

}  // namespace

Bits Scheme::bits_of_layer(int layer) const {
  for (const Override& other : std::views::reverse(overrides_)) {  // the last one named wins
    if (other.first_layer <= layer && layer <= other.last_layer) return other.bits;
  }
  return bits_;
}

Result<Scheme> parse_scheme(std::string_view text) {
  if (text.empty()) {
    return fail(Code::kInvalidArgument, format_text("no scheme; there are {}", all_names()));
  }
  Scheme scheme;
  scheme.name_ = text;
  bool first = true;
  for (const auto part_range : std::views::split(text, ',')) {
    const std::string_view part(part_range);
    const auto equals = first ? std::string_view::npos : part.find('=');
    if (!first && equals == std::string_view::npos) {
      return fail(
          Code::kInvalidArgument,
          format_text("'{}' names no layers: write LAYER=SCHEME or FIRST-LAST=SCHEME", part));
    }
    const std::string_view name = first ? part : part.substr(equals + 1);
    const std::optional<Bits> bits = find_bits(name);
    if (!bits) {
      return fail(Code::kInvalidArgument,
                  format_text("there is no scheme '{}'; there are {}", name, all_names()));
    }
    if (first) {
      scheme.bits_ = *bits;
      first = false;
      continue;
    }
    const std::string_view range = part.substr(0, equals);
    const auto dash = range.find('-');
    const std::optional<int> begin = parse_layer(range.substr(0, dash));
    const std::optional<int> end =
        dash == std::string_view::npos ? begin : parse_layer(range.substr(dash + 1));
    if (!begin || !end || *begin > *end) {
      return fail(Code::kInvalidArgument, format_text("'{}' is not a range of layers", range));
    }
    scheme.overrides_.push_back({*begin, *end, *bits});
  }
  return scheme;
}

}  // namespace slipstream::turbo
