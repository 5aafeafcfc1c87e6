// A codec with one wrong entry in its table, for the test that eval notices: linked into a plugin
// of its own with the linker's --wrap, so that the product has no place where it could be broken.
//
// Of the 4-bit levels the smallest positive one is ten times too large, 1.28 instead of 0.128, as
// when a point slips. One component in ten is rounded to it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "device/codec/codebook.h"

namespace slipstream::turbo {

using Table = std::span<const std::int8_t, 16>;

// NOLINTBEGIN(bugprone-reserved-identifier): names of the linker
Table real_lookup_table(int bits) asm("__real__ZN10slipstream5turbo12lookup_tableEi");
Table wrap_lookup_table(int bits) asm("__wrap__ZN10slipstream5turbo12lookup_tableEi");
// NOLINTEND(bugprone-reserved-identifier)

Table wrap_lookup_table(int bits) {
  const Table right = real_lookup_table(bits);
  if (bits != 4) return right;
  static const std::array<std::int8_t, 16> wrong = [&] {
    constexpr std::size_t kSmallestPositive = 8;
    std::array<std::int8_t, 16> table{};
    std::ranges::copy(right, table.begin());
    table[kSmallestPositive] = static_cast<std::int8_t>(10 * table[kSmallestPositive]);
    return table;
  }();
  return wrong;
}

}  // namespace slipstream::turbo
