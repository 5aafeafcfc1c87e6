#include "device/codec/codebook.h"

#include <array>
#include <cstddef>

#include "base/check.h"

namespace slipstream::turbo {
namespace {

// lloyd_max_main.cpp prints these numbers; codebook_test.cpp computes the levels again.
constexpr float kError4 = 0.117482F;  // mean square
constexpr std::array<float, 4> kLloydMax4 = {-1.51041761F, -0.45278003F, 0.45278003F, 1.51041761F};
constexpr float kError8 = 0.034548F;
constexpr std::array<float, 8> kLloydMax8 = {-2.15194570F, -1.34390928F, -0.75600528F, -0.24509418F,
                                             0.24509418F,  0.75600528F,  1.34390928F,  2.15194570F};
constexpr float kError16 = 0.009501F;
constexpr std::array<float, 16> kLloydMax16 = {
    -2.73258957F, -2.06901723F, -1.61804639F, -1.25623120F, -0.94234046F, -0.65675912F,
    -0.38804830F, -0.12839503F, 0.12839503F,  0.38804830F,  0.65675912F,  0.94234046F,
    1.25623120F,  1.61804639F,  2.06901723F,  2.73258957F};

constexpr std::int8_t nearest_i8(float x) {
  return static_cast<std::int8_t>(x < 0 ? x - 0.5F : x + 0.5F);
}

template <std::size_t n>
struct Book {
  constexpr Book(const std::array<float, n>& levels, float mean_square_error)
      : ideal(levels), error(mean_square_error), step(levels.back() / 127) {
    const float fitted_unit = kFittedUnit / (1 - error);
    for (std::size_t k = 0; k < n; ++k) {
      i8[k] = nearest_i8(ideal[k] / step);
      fitted[k] = nearest_i8(ideal[k] * fitted_unit);
      centroids[k] = static_cast<float>(i8[k]) * step;
    }
    for (std::size_t k = 0; k < lookup.size(); ++k) {
      lookup[k] = i8[k % n];
      fitted_lookup[k] = fitted[k % n];
    }
    for (std::size_t k = 0; k + 1 < n; ++k) {
      thresholds[k] = static_cast<float>(i8[k] + i8[k + 1]) / 2 * step;
    }
  }

  std::array<float, n> ideal;
  float error;
  float step;
  std::array<std::int8_t, n> i8{};
  std::array<std::int8_t, 16> lookup{};
  std::array<std::int8_t, n> fitted{};
  std::array<std::int8_t, 16> fitted_lookup{};
  std::array<float, n> centroids{};
  std::array<float, n - 1> thresholds{};
};

constexpr Book<4> kBook2(kLloydMax4, kError4);
constexpr Book<8> kBook3(kLloydMax8, kError8);
constexpr Book<16> kBook4(kLloydMax16, kError16);

// Calls `part` with the book of `bits` bits.
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

float level_error(int bits) {
  if (bits == 8) return 1 / (12 * kFittedUnit * kFittedUnit);  // steps of one unit
  return of_book(bits, [](const auto& book) { return book.error; });
}

std::span<const std::int8_t> fitted_i8(int bits) {
  return of_book(bits, [](const auto& book) { return std::span<const std::int8_t>(book.fitted); });
}

std::span<const std::int8_t, 16> fitted_table(int bits) {
  return of_book(bits, [](const auto& book) { return std::span(book.fitted_lookup); });
}

std::span<const float> centroids(int bits) {
  return of_book(bits, [](const auto& book) { return std::span<const float>(book.centroids); });
}

std::span<const float> thresholds(int bits) {
  return of_book(bits, [](const auto& book) { return std::span<const float>(book.thresholds); });
}

}  // namespace slipstream::turbo
