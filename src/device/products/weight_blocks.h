// The bytes of blocks of weights, as GGUF files have them. ggml's declarations are in no package.
//
// Threads: constants. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slipstream::turbo {

// Blocks of 32 weights.
inline constexpr std::size_t kQ8_0Bytes = 34;   // f16 scale, 32 signed bytes
inline constexpr std::size_t kQ4_0Bytes = 18;   // f16 scale, 16 bytes of nibbles
inline constexpr std::size_t kMxfp4Bytes = 17;  // exponent, 16 bytes of nibbles
// Blocks of 256 weights.
inline constexpr std::size_t kIq4XsBytes = 136;  // f16 scale, 16 + 32 bits of scales, 128 nibbles
inline constexpr std::size_t kQ4KBytes = 144;    // f16 scale and minimum, 12 of scales, 128 nibbles
inline constexpr std::size_t kQ5KBytes = 176;    // the same, 32 of fifth bits before the nibbles
inline constexpr std::size_t kQ6KBytes = 210;  // 128 of low bits, 64 of high, 16 scales, f16 scale

// What a nibble stands for.
alignas(16) inline constexpr std::int8_t kIq4Levels[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

}  // namespace slipstream::turbo
