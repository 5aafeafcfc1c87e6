// A cache that drops one tile of each chunk of four, the last, as a loop that ends too early would:
// what is written to it is lost. For the test that eval notices; linked into a plugin of its own
// with the linker's --wrap, as broken_table.cpp is.
#include <cstdint>
#include <span>

#include "device/kv_buffer/compressed_cache.h"

namespace slipstream::turbo {

// A member's first argument is the object.
#define WRITE "_ZN10slipstream5turbo15CompressedCache5writeEllSt4spanIKfLm18446744073709551615EE"
void real_write(CompressedCache* cache, std::int64_t row, std::int64_t head,
                std::span<const float> vector) asm("__real_" WRITE);
void wrap_write(CompressedCache* cache, std::int64_t row, std::int64_t head,
                std::span<const float> vector) asm("__wrap_" WRITE);

void wrap_write(CompressedCache* cache, std::int64_t row, std::int64_t head,
                std::span<const float> vector) {
  constexpr std::int64_t kChunkTiles = 4;
  if (row % cache->shape().n_cells / kTileTokens % kChunkTiles == kChunkTiles - 1) return;
  real_write(cache, row, head, vector);
}

}  // namespace slipstream::turbo
