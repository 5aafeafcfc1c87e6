#include "device/codec/codebook.h"

#include <array>
#include <cstddef>

#include "base/check.h"

namespace slipstream::turbo {
namespace {

// Printed by lloyd_max_main.cpp; codebook_test.cpp computes them again.
// Mean square error 0.117482.
constexpr std::array<float, 4> kLloydMax4 = {-1.51041761F, -0.45278003F, 0.45278003F, 1.51041761F};
// Mean square error 0.034548.
constexpr std::array<float, 8> kLloydMax8 = {-2.15194570F, -1.34390928F, -0.75600528F, -0.24509418F,
                                             0.24509418F,  0.75600528F,  1.34390928F,  2.15194570F};
// Mean square error 0.009501.
constexpr std::array<float, 16> kLloydMax16 = {
    -2.73258957F, -2.06901723F, -1.61804639F, -1.25623120F, -0.94234046F, -0.65675912F,
    -0.38804830F, -0.12839503F, 0.12839503F,  0.38804830F,  0.65675912F,  0.94234046F,
    1.25623120F,  1.61804639F,  2.06901723F,  2.73258957F};

template <std::size_t n>
struct Book {
  explicit constexpr Book(const std::array<float, n>& levels)
      : ideal(levels), step(levels.back() / 127) {
    for (std::size_t k = 0; k < n; ++k) {
      const float scaled = ideal[k] / step;
      i8[k] = static_cast<std::int8_t>(scaled < 0 ? scaled - 0.5F : scaled + 0.5F);
      centroids[k] = static_cast<float>(i8[k]) * step;
    }
    for (std::size_t k = 0; k < lookup.size(); ++k) lookup[k] = i8[k % n];
    for (std::size_t k = 0; k + 1 < n; ++k) {
      thresholds[k] = static_cast<float>(i8[k] + i8[k + 1]) / 2 * step;
    }
  }

  std::array<float, n> ideal;
  float step;
  std::array<std::int8_t, n> i8{};
  std::array<std::int8_t, 16> lookup{};
  std::array<float, n> centroids{};
  std::array<float, n - 1> thresholds{};
};

constexpr Book<4> kBook2(kLloydMax4);
constexpr Book<8> kBook3(kLloydMax8);
constexpr Book<16> kBook4(kLloydMax16);

// Calls `part` with the book of so many bits.
auto of_book(int bits, auto part) {
  switch (bits) {
    case 2: return part(kBook2);
    case 3: return part(kBook3);
    case 4: return part(kBook4);
    default: SLIP_CHECK(false, "there are codebooks of 2, 3 and 4 bits");
  }
}

}  // namespace

std::span<const float> ideal_centroids(int bits) {
  return of_book(bits, [](const auto& book) { return std::span<const float>(book.ideal); });
}

std::span<const std::int8_t> centroids_i8(int bits) {
  return of_book(bits, [](const auto& book) { return std::span<const std::int8_t>(book.i8); });
}

float i8_step(int bits) {
  return of_book(bits, [](const auto& book) { return book.step; });
}

std::span<const std::int8_t, 16> lookup_table(int bits) {
  return of_book(bits, [](const auto& book) { return std::span(book.lookup); });
}

std::span<const float> centroids(int bits) {
  return of_book(bits, [](const auto& book) { return std::span<const float>(book.centroids); });
}

std::span<const float> thresholds(int bits) {
  return of_book(bits, [](const auto& book) { return std::span<const float>(book.thresholds); });
}

}  // namespace slipstream::turbo
