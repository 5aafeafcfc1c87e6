#include "device/products/iq2_xxs_table.h"

#include <ggml.h>

#include <cmath>
#include <cstddef>
#include <cstring>

namespace slipstream::turbo {
namespace {

// Eight weights of a block whose scale is 1 and in which only these codes occur.
std::array<float, 8> eight_weights(std::uint32_t code, std::uint32_t sign_code) {
  constexpr std::uint16_t kOne = 0x3c00;  // f16
  std::array<std::byte, 66> block = {};
  std::memcpy(block.data(), &kOne, sizeof(kOne));
  std::memcpy(block.data() + 2, &code, sizeof(code));
  std::memcpy(block.data() + 6, &sign_code, sizeof(sign_code));
  std::array<float, 256> weights;
  ggml_get_type_traits(GGML_TYPE_IQ2_XXS)->to_float(block.data(), weights.data(), weights.size());
  std::array<float, 8> first;
  std::memcpy(first.data(), weights.data(), sizeof(first));
  return first;
}

Iq2XxsTable read_iq2_xxs_table() {
  // Scale bits of 0 mean an eighth.
  constexpr float kInverseScale = 8;
  Iq2XxsTable table = {};
  for (std::uint32_t code = 0; code < table.magnitudes.size(); ++code) {
    const std::array<float, 8> weights = eight_weights(code, 0);
    for (std::size_t i = 0; i < 8; ++i) {
      const auto magnitude = static_cast<std::uint64_t>(std::abs(weights[i]) * kInverseScale);
      table.magnitudes[code] |= magnitude << (8 * i);
    }
  }
  for (std::uint32_t code = 0; code < table.signs.size(); ++code) {
    const std::array<float, 8> weights = eight_weights(0, code);
    for (std::size_t i = 0; i < 8; ++i) {
      if (std::signbit(weights[i])) table.signs[code] |= std::uint64_t{255} << (8 * i);
    }
  }
  return table;
}

}  // namespace

const Iq2XxsTable& iq2_xxs_table() {
  static const Iq2XxsTable table = read_iq2_xxs_table();
  return table;
}

}  // namespace slipstream::turbo
