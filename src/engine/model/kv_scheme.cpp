#include "engine/model/kv_scheme.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/format.h"
#include "contract/tile.h"

namespace slipstream {
namespace {

// The types that libllama accepts for a cache.
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

std::optional<ggml_type> find_type(std::string_view name) {
  const auto* found = std::ranges::find(kStockTypes, name, ggml_type_name);
  return found == kStockTypes.end() ? std::nullopt : std::optional(*found);
}

double type_bits(ggml_type type) {
  return 8.0 * static_cast<double>(ggml_type_size(type)) /
         static_cast<double>(ggml_blck_size(type));
}

double side_bits(turbo::Side side, int bits, int head_dim) {
  if (bits == 0 || !turbo::is_code_head(head_dim)) return type_bits(GGML_TYPE_F16);
  const std::size_t bytes = turbo::tile_code_bytes(bits, head_dim) +
                            turbo::tile_scale_bytes(turbo::n_scales(side, bits, head_dim));
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(turbo::kTileTokens * head_dim);
}

}  // namespace

double KvScheme::bits_per_element(int head_dim) const {
  if (!turbo_) return (type_bits(key_type_) + type_bits(value_type_)) / 2;
  const turbo::Bits bits = turbo_->bits();
  return (side_bits(turbo::Side::kKey, bits.keys, head_dim) +
          side_bits(turbo::Side::kValue, bits.values, head_dim)) /
         2;
}

Result<KvScheme> parse_kv_scheme(std::string_view name) {
  KvScheme scheme;
  scheme.name_ = name;
  if (name.starts_with("turbo")) {
    const std::string_view first = name.substr(0, name.find(','));
    if (!turbo::parse_scheme(first)) return no_scheme(first);
    Result<turbo::Scheme> turbo = turbo::parse_scheme(name);
    if (!turbo) return std::unexpected(std::move(turbo.error()));
    scheme.turbo_ = std::move(*turbo);
    return scheme;
  }
  const std::size_t slash = name.find('/');
  const std::optional<ggml_type> keys = find_type(name.substr(0, slash));
  const std::optional<ggml_type> values =
      slash == std::string_view::npos ? keys : find_type(name.substr(slash + 1));
  if (!keys || !values) return no_scheme(name);
  scheme.key_type_ = *keys;
  scheme.value_type_ = *values;
  return scheme;
}

std::vector<std::string_view> kv_scheme_names() {
  std::vector<std::string_view> names(turbo::kSchemeNames.begin(), turbo::kSchemeNames.end());
  for (const ggml_type type : kStockTypes) names.emplace_back(ggml_type_name(type));
  return names;
}

}  // namespace slipstream
