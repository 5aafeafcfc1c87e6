// The tables of IQ2_XXS: eight magnitudes for a code of 8 bits, eight signs for one of 7.
//
// ggml does not publish them, but its expander does what they say: they are read off its results,
// once. So a type of 2 bits can be expanded as fast as the others.
//
// Threads: thread-safe; immutable. Errors: none.
#pragma once

#include <array>
#include <cstdint>

namespace slipstream::turbo {

struct Iq2XxsTable {
  std::array<std::uint64_t, 256> magnitudes;  // a byte each
  std::array<std::uint64_t, 128> signs;       // a byte each: 0, or 255 for a negative weight
};

[[nodiscard]] const Iq2XxsTable& iq2_xxs_table();

}  // namespace slipstream::turbo
