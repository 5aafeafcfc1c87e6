#include "device/codec/rotation.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace slipstream::turbo {
namespace {

// "slipstre". Changing it makes every saved cache unreadable.
constexpr std::uint64_t kSeed = 0x736c697073747265;

// Steele, Lea, Flood: "Fast splittable pseudorandom number generators" (2014).
std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
  return z ^ (z >> 31U);
}

// The transform is its own inverse.
void walsh_hadamard(std::span<float> x) {
  const std::size_t n = x.size();
  for (std::size_t distance = 1; distance < n; distance *= 2) {
    for (std::size_t i = 0; i < n; ++i) {
      if ((i & distance) != 0) continue;
      const float a = x[i];
      const float b = x[i + distance];
      x[i] = a + b;
      x[i + distance] = a - b;
    }
  }
  const float scale = 1.0F / std::sqrt(static_cast<float>(n));
  for (float& value : x) value *= scale;
}

}  // namespace

Rotation::Rotation(int dim) {
  SLIP_CHECK(is_code_head(dim), "a head that cannot have codes");
  std::uint64_t state = kSeed;
  for (int i = 0; i < dim; ++i) signs_.push_back((splitmix64(state) >> 63U) != 0 ? -1.0F : 1.0F);
  for (auto rest = static_cast<unsigned>(dim); rest != 0;) {
    const unsigned block = std::bit_floor(rest);
    blocks_.push_back(static_cast<int>(block));
    rest -= block;
  }
}

void Rotation::forward(std::span<float> x) const {
  flip_signs(x);
  transform(x);
}

void Rotation::inverse(std::span<float> x) const {
  transform(x);
  flip_signs(x);
}

void Rotation::transform(std::span<float> x) const {
  std::size_t start = 0;
  for (const int block : blocks_) {
    walsh_hadamard(x.subspan(start, static_cast<std::size_t>(block)));
    start += static_cast<std::size_t>(block);
  }
}

void Rotation::flip_signs(std::span<float> x) const {
  SLIP_CHECK(x.size() == signs_.size(), "a vector of another dim than the rotation");
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= signs_[i];
}

}  // namespace slipstream::turbo
