// A cache that drops one tile of 16 tokens, in one of the model's layers, and of its keys alone:
// what is written to it is lost. For the test that eval notices; linked into a plugin of its own
// with the linker's --wrap, as broken_table.cpp is.
#include <cstdint>
#include <span>

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

// The rows of a call are of one tile.
void wrap_write(CompressedCache* cache, std::span<const std::int64_t> rows, std::int64_t head,
                std::span<const float> vectors) {
  constexpr std::int64_t kLostTile = 11;
  static CompressedCache* const first = cache;  // that is written to: keys of the first layer
  if (cache == first && rows[0] % cache->shape().n_cells / kTileTokens == kLostTile) return;
  real_write(cache, rows, head, vectors);
}

}  // namespace slipstream::turbo
