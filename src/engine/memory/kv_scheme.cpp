#include "engine/memory/kv_scheme.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <ranges>

#include "base/format.h"
#include "engine/memory/turbo_tile.h"

namespace slipstream {
namespace {

// Those that people choose among, best known first. Any other pair of widths is a scheme too.
constexpr std::array<std::string_view, 10> kTurboNames = {
    "turbo8v4", "turbo8",   "turbo4", "turbo3",   "turbo8v3",
    "turbo4v3", "turbo4v2", "turbo2", "turbo0v4", "turbo0v0",
};
// What libllama takes as type of a cache.
constexpr std::array kStockTypes = {
    GGML_TYPE_F16,  GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,   GGML_TYPE_Q5_1, GGML_TYPE_Q5_0,
    GGML_TYPE_Q4_1, GGML_TYPE_BF16, GGML_TYPE_IQ4_NL, GGML_TYPE_F32,
};

std::unexpected<Error> no_scheme(std::string_view name) {
  std::string names;
  for (const std::string_view other : kv_scheme_names()) {
    names += format_text("{}{}", names.empty() ? "" : ", ", other);
  }
  return fail(Code::kInvalidArgument,
              format_text("there is no KV scheme '{}'; there are {}", name, names));
}

std::optional<int> parse_width(std::string_view text) {
  constexpr std::string_view kWidths = "02348";
  if (text.size() != 1 || !kWidths.contains(text[0])) return std::nullopt;
  return text[0] - '0';
}

std::optional<KvBits> find_bits(std::string_view name) {
  if (name == "f16") return KvBits{};  // of single layers
  constexpr std::string_view kPrefix = "turbo";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const std::size_t v = name.find('v');
  const std::optional<int> keys = parse_width(name.substr(0, v));
  const std::optional<int> values =
      v == std::string_view::npos ? keys : parse_width(name.substr(v + 1));
  if (!keys || !values) return std::nullopt;
  return KvBits{.keys = *keys, .values = *values};
}

std::optional<ggml_type> find_type(std::string_view name) {
  const auto* found = std::ranges::find(kStockTypes, name, ggml_type_name);
  return found == kStockTypes.end() ? std::nullopt : std::optional(*found);
}

std::optional<int> parse_layer(std::string_view text) {
  int layer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layer);
  if (error != std::errc() || end != text.data() + text.size() || layer < 0) return std::nullopt;
  return layer;
}

double type_bits(ggml_type type) {
  return 8.0 * static_cast<double>(ggml_type_size(type)) /
         static_cast<double>(ggml_blck_size(type));
}

double side_bits(KvSide side, int bits, int head_dim) {
  if (bits == 0 || !is_turbo_head(head_dim)) return type_bits(GGML_TYPE_F16);
  const auto bytes = static_cast<double>(turbo_code_bytes(bits, head_dim) +
                                         turbo_scale_bytes(side, bits, head_dim));
  return 8.0 * bytes / static_cast<double>(kTurboTileTokens * head_dim);
}

}  // namespace

KvBits KvScheme::bits_of_layer(int layer) const {
  for (const Override& other : std::views::reverse(overrides_)) {  // the last one named wins
    if (other.first_layer <= layer && layer <= other.last_layer) return other.bits;
  }
  return bits_;
}

double KvScheme::bits_per_element(int head_dim) const {
  if (!is_turbo()) return (type_bits(key_type_) + type_bits(value_type_)) / 2;
  return (side_bits(KvSide::kKey, bits_.keys, head_dim) +
          side_bits(KvSide::kValue, bits_.values, head_dim)) /
         2;
}

Result<KvScheme> KvScheme::parse_stock(std::string_view name) {
  const std::size_t slash = name.find('/');
  const std::optional<ggml_type> keys = find_type(name.substr(0, slash));
  const std::optional<ggml_type> values =
      slash == std::string_view::npos ? keys : find_type(name.substr(slash + 1));
  if (!keys || !values) return no_scheme(name);
  KvScheme scheme;
  scheme.name_ = name;
  scheme.key_type_ = *keys;
  scheme.value_type_ = *values;
  return scheme;
}

Result<KvScheme> KvScheme::parse_turbo(std::string_view name) {
  KvScheme scheme;
  scheme.name_ = name;
  bool is_first = true;
  for (const auto part_range : std::views::split(name, ',')) {
    const std::string_view part(part_range);
    const std::size_t equals = is_first ? std::string_view::npos : part.find('=');
    if (!is_first && equals == std::string_view::npos) {
      return fail(
          Code::kInvalidArgument,
          format_text("'{}' names no layers: write LAYER=SCHEME or FIRST-LAST=SCHEME", part));
    }
    const std::string_view scheme_name = is_first ? part : part.substr(equals + 1);
    const std::optional<KvBits> bits = find_bits(scheme_name);
    if (!bits) return no_scheme(scheme_name);
    if (is_first) {
      scheme.bits_ = *bits;
      is_first = false;
      continue;
    }
    const std::string_view range = part.substr(0, equals);
    const std::size_t dash = range.find('-');
    const std::optional<int> first = parse_layer(range.substr(0, dash));
    const std::optional<int> last =
        dash == std::string_view::npos ? first : parse_layer(range.substr(dash + 1));
    if (!first || !last || *first > *last) {
      return fail(Code::kInvalidArgument, format_text("'{}' is not a range of layers", range));
    }
    scheme.overrides_.push_back({.first_layer = *first, .last_layer = *last, .bits = *bits});
  }
  return scheme;
}

Result<KvScheme> parse_kv_scheme(std::string_view name) {
  return name.starts_with("turbo") ? KvScheme::parse_turbo(name) : KvScheme::parse_stock(name);
}

std::vector<std::string_view> kv_scheme_names() {
  std::vector<std::string_view> names(kTurboNames.begin(), kTurboNames.end());
  for (const ggml_type type : kStockTypes) names.emplace_back(ggml_type_name(type));
  return names;
}

}  // namespace slipstream
