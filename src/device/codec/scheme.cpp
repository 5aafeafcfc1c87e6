#include "device/codec/scheme.h"

#include <array>
#include <charconv>
#include <optional>
#include <ranges>

#include "base/format.h"

namespace slipstream::turbo {
namespace {

struct Named {
  std::string_view name;
  Bits bits;
};

constexpr std::array kNamed = {
    Named{"f16", {0, 0}},    Named{"turbo0v0", {0, 0}}, Named{"turbo0v4", {0, 4}},
    Named{"turbo8", {8, 8}}, Named{"turbo8v4", {8, 4}}, Named{"turbo8v3", {8, 3}},
    Named{"turbo4", {4, 4}}, Named{"turbo4v3", {4, 3}}, Named{"turbo4v2", {4, 2}},
    Named{"turbo3", {3, 3}}, Named{"turbo2", {2, 2}},
};

std::optional<Bits> find_bits(std::string_view name) {
  for (const Named& named : kNamed) {
    if (named.name == name) return named.bits;
  }
  return std::nullopt;
}

std::string all_names() {
  std::string names;
  for (const Named& named : kNamed) {
    names += format_text("{}{}", names.empty() ? "" : ", ", named.name);
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
