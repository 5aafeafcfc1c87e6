// PackedVector: a vector in 8 bits for each of its numbers, and the scan that compares many with
// one.
//
//   bytes  0..3   scale, f32 little-endian: a number is its code times this
//          4..    codes, i8, -127 to 127
//
// The cosine of two packed vectors differs from that of the vectors by less than 0.01 (in tests).
//
// Threads: pure functions. Errors: read_packed(): nullopt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace slipstream {

struct PackedVector {
  float scale = 0;
  std::vector<std::int8_t> codes;
};

// A vector of length 1 gets a scale with which dot() is the cosine. A vector with a number that is
// not finite is packed as zeros: it is near nothing.
[[nodiscard]] PackedVector pack(std::span<const float> vector);

[[nodiscard]] std::vector<std::byte> bytes_of(const PackedVector& vector);
// nullopt: these are not the bytes of a vector of so many dimensions.
[[nodiscard]] std::optional<PackedVector> read_packed(std::span<const std::byte> bytes,
                                                      int n_dimensions);

// Rows of codes are padded with zeros to a multiple of this, so that the scan has no ends to look
// after.
inline constexpr std::size_t kCodesOfStep = 64;
[[nodiscard]] std::size_t padded(std::size_t n_codes);

// REQUIRES: both have padded(n) codes.
[[nodiscard]] std::int32_t dot_of_codes(const std::int8_t* a, const std::int8_t* b,
                                        std::size_t n_padded);

}  // namespace slipstream
