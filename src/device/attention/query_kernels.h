// The kernels that prepare a query for attention on codes.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace slipstream::turbo {

// The largest magnitude; infinity if a number is infinite or NaN.
// REQUIRES: vectors here have a multiple of 16 numbers.
[[nodiscard]] float peak_of(std::span<const float> vector);

[[nodiscard]] float dot_channels(std::span<const float> a, std::span<const float> b);

// steps[c] = vector[c] * per_step, rounded to nearest, as one signed digit, or as two with
// steps = high * 2^kQueryDigitShift + low. Gives the sum of all steps.
// REQUIRES: the steps fit.
[[nodiscard]] std::int32_t quantise_digit(std::span<const float> vector, float per_step,
                                          std::int8_t* digits);
[[nodiscard]] std::int32_t quantise_digits(std::span<const float> vector, float per_step,
                                           std::int8_t* high, std::int8_t* low);

}  // namespace slipstream::turbo
