// Test support for this folder: vectors like keys and values, and more difficult ones; and a struct
// that owns codes.
//
// Threads: thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "device/codec/vector_codec.h"

namespace slipstream::turbo {

enum class Kind {
  kGaussian,
  kStudent,  // Student's t with 3 degrees of freedom: heavy tails
  kOutlier,  // Gaussian, one channel 60 sigma away, another in each vector
  kOffset,   // Gaussian around 8 sigma in every channel
  kSparse,   // one to four channels of equal size, all others 0
};
inline constexpr Kind kKinds[] = {Kind::kGaussian, Kind::kStudent, Kind::kOutlier, Kind::kOffset,
                                  Kind::kSparse};

constexpr const char* name(Kind kind) {
  switch (kind) {
    case Kind::kGaussian: return "gaussian";
    case Kind::kStudent: return "student";
    case Kind::kOutlier: return "outlier";
    case Kind::kOffset: return "offset";
    case Kind::kSparse: return "sparse";
  }
  return "?";
}

class TestVectors {
 public:
  explicit TestVectors(unsigned seed) : random_(seed) {}

  std::vector<float> draw(Kind kind, int dim) {
    std::vector<float> x(static_cast<std::size_t>(dim));
    std::student_t_distribution<float> student(3);
    for (float& value : x) {
      if (kind == Kind::kStudent) value = student(random_);
      if (kind == Kind::kGaussian || kind == Kind::kOutlier) value = normal_(random_);
      if (kind == Kind::kOffset) value = 8 + normal_(random_);
    }
    if (kind == Kind::kOutlier) x[below(x.size())] += 60;
    if (kind == Kind::kSparse) {
      for (std::size_t n = 1 + below(4); n > 0; --n) x[below(x.size())] = below(2) == 0 ? 1 : -1;
    }
    return x;
  }

  float normal() { return normal_(random_); }
  std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }

 private:
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
};

// The result of encode(), with its own memory.
struct Encoded {
  Encoded(int code_bits, std::span<const float> rotated) : bits(code_bits), codes(rotated.size()) {
    scale = encode(bits, rotated, codes);
  }
  Encoded(int code_bits, std::uint16_t scale_f16, std::vector<std::uint8_t> some_codes)
      : bits(code_bits), scale(scale_f16), codes(std::move(some_codes)) {}

  [[nodiscard]] std::vector<float> decoded() const {
    std::vector<float> rotated(codes.size());
    decode(bits, scale, codes, rotated);
    return rotated;
  }
  bool operator==(const Encoded&) const = default;

  int bits;
  std::uint16_t scale = 0;
  std::vector<std::uint8_t> codes;
};

inline double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

}  // namespace slipstream::turbo
