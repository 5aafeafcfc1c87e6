#include "retrieval/dense/packed_vector.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace slipstream {
namespace {

constexpr float kCodeMax = 127;

}  // namespace

PackedVector pack(std::span<const float> vector) {
  PackedVector packed{.scale = 0, .codes = std::vector<std::int8_t>(vector.size())};
  float largest = 0;
  for (const float value : vector) {
    if (!std::isfinite(value)) return packed;
    largest = std::max(largest, std::abs(value));
  }
  if (largest <= 0) return packed;
  packed.scale = largest / kCodeMax;
  std::ranges::transform(vector, packed.codes.begin(), [&](float value) {
    return static_cast<std::int8_t>(std::lround(value / packed.scale));
  });
  return packed;
}

std::vector<std::byte> bytes_of(const PackedVector& vector) {
  std::vector<std::byte> bytes(sizeof(float) + vector.codes.size());
  std::memcpy(bytes.data(), &vector.scale, sizeof(float));
  std::ranges::copy(std::as_bytes(std::span(vector.codes)), bytes.begin() + sizeof(float));
  return bytes;
}

std::optional<PackedVector> read_packed(std::span<const std::byte> bytes, int n_dimensions) {
  if (n_dimensions <= 0 || bytes.size() != sizeof(float) + static_cast<std::size_t>(n_dimensions)) {
    return std::nullopt;
  }
  PackedVector vector;
  std::memcpy(&vector.scale, bytes.data(), sizeof(float));
  if (!std::isfinite(vector.scale) || vector.scale < 0) return std::nullopt;
  vector.codes.resize(static_cast<std::size_t>(n_dimensions));
  std::memcpy(vector.codes.data(), bytes.data() + sizeof(float), vector.codes.size());
  return vector;
}

std::size_t padded(std::size_t n_codes) {
  return (n_codes + kCodesOfStep - 1) / kCodesOfStep * kCodesOfStep;
}

std::int32_t dot_of_codes(const std::int8_t* a, const std::int8_t* b, std::size_t n_padded) {
  std::int32_t sum = 0;
  for (std::size_t at = 0; at < n_padded; at += kCodesOfStep) {
    // A loop of a known length, which compilers turn into the instructions for pairs of 16 bits.
    std::int32_t of_step = 0;
    for (std::size_t i = 0; i < kCodesOfStep; ++i) {
      of_step += static_cast<std::int16_t>(a[at + i]) * static_cast<std::int16_t>(b[at + i]);
    }
    sum += of_step;
  }
  return sum;
}

}  // namespace slipstream
