// A cache in which the signs of keys, by which a query finds what it reads, are noise. With a limit
// (attend=N) it reads some tokens, not those that fit it. For the test that calibrate notices;
// linked into a plugin of its own with the linker's --wrap, as broken_table.cpp is.
#include <cstdint>
#include <span>
#include <vector>

#include "device/kv_buffer/compressed_cache.h"

namespace slipstream::turbo {

// A member's first argument is the object.
#define WRITE                                      \
  "_ZN10slipstream5turbo15CompressedCache10write_" \
  "rowsESt4spanIKlLm18446744073709551615EElS2_IKfLm18446744073709551615EE"
void real_write(CompressedCache* cache, std::span<const std::int64_t> rows, std::int64_t head,
                std::span<const float> vectors) asm("__real_" WRITE);
void wrap_write(CompressedCache* cache, std::span<const std::int64_t> rows, std::int64_t head,
                std::span<const float> vectors) asm("__wrap_" WRITE);

void wrap_write(CompressedCache* cache, std::span<const std::int64_t> rows, std::int64_t head,
                std::span<const float> vectors) {
  real_write(cache, rows, head, vectors);
  if (cache->signs() == nullptr) return;
  auto* signs = const_cast<KeySigns*>(cache->signs());
  std::vector<float> noise(static_cast<std::size_t>(cache->shape().head_dim));
  for (const std::int64_t row : rows) {
    auto state = static_cast<std::uint32_t>(row + 1);
    for (float& x : noise) {
      state = state * 1664525 + 1013904223;  // Numerical Recipes
      x = (state & 0x80000000U) != 0 ? 1.0F : -1.0F;
    }
    signs->write(row, head, noise);
  }
}

}  // namespace slipstream::turbo
