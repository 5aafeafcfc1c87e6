// The bytes that a program computes from contract/tile.h are those that a cache takes.
#include <gtest/gtest.h>

#include "device/kv_buffer/compressed_cache.h"

namespace slipstream::turbo {
namespace {

TEST(HeadBytes, AreWhatACacheTakes) {
  constexpr std::int64_t kHeads = 3;
  constexpr std::int64_t kStreamCount = 2;
  for (const int bits : {2, 3, 4, 8}) {
    for (int head_dim = kHeadDimMin; head_dim <= kHeadDimMax; head_dim += 16) {
      for (const std::int64_t n_cells : {1, 16, 250, 256, 4096, 32768, 300000}) {
        for (const std::int64_t attend : {0, 512}) {
          for (const Side side : {Side::kKey, Side::kValue}) {
            const CacheShape shape{.side = side,
                                   .bits = bits,
                                   .head_dim = head_dim,
                                   .n_heads = kHeads,
                                   .n_cells = n_cells,
                                   .n_streams = kStreamCount,
                                   .attend = attend};
            EXPECT_EQ(
                head_bytes(side, bits, head_dim, n_cells, attend != 0) * kHeads * kStreamCount,
                CompressedCache::n_bytes(shape))
                << bits << " bits, head " << head_dim << ", " << n_cells << " cells";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace slipstream::turbo
