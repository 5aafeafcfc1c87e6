// What the engine believes of the plugin's schemes is what the plugin does: names, bits, sizes. The
// two rooms may not include each other; this test includes both.
#include "engine/memory/kv_scheme.h"

#include <gtest/gtest.h>

#include "device/attention/attention.h"
#include "device/codec/rotation.h"
#include "device/codec/scheme.h"
#include "device/kv_buffer/compressed_cache.h"
#include "engine/memory/context_bytes.h"
#include "engine/memory/turbo_tile.h"

namespace slipstream {
namespace {

TEST(KvSchemeContract, ThePluginKnowsEveryNameOfOurs) {
  int n_turbo = 0;
  for (const std::string_view name : kv_scheme_names()) {
    if (!name.starts_with("turbo")) continue;
    const Result<turbo::Scheme> theirs = turbo::parse_scheme(name);
    ASSERT_TRUE(theirs) << theirs.error().message;
    const KvBits ours = parse_kv_scheme(name)->bits_of_layer(0);
    EXPECT_EQ(theirs->bits_of_layer(0), (turbo::Bits{ours.keys, ours.values})) << name;
    ++n_turbo;
  }
  EXPECT_GE(n_turbo, 10);
}

TEST(KvSchemeContract, BothKnowTheSameWidths) {
  for (int keys = 0; keys <= 9; ++keys) {
    for (int values = 0; values <= 9; ++values) {
      const std::string name = "turbo" + std::to_string(keys) + "v" + std::to_string(values);
      const Result<turbo::Scheme> theirs = turbo::parse_scheme(name);
      const Result<KvScheme> ours = parse_kv_scheme(name);
      ASSERT_EQ(theirs.has_value(), ours.has_value()) << name;
      if (!ours) continue;
      EXPECT_EQ(theirs->bits_of_layer(0), (turbo::Bits{keys, values})) << name;
      EXPECT_EQ(ours->bits_of_layer(0), (KvBits{keys, values})) << name;
    }
  }
}

TEST(KvSchemeContract, WeKnowEveryNameOfThePlugin) {
  const std::string list = turbo::parse_scheme("unknown").error().message;
  std::size_t at = list.find("there are ");
  ASSERT_NE(at, std::string::npos);
  at += std::string_view("there are ").size();
  while (at < list.size()) {
    const std::size_t end = std::min(list.find(", ", at), list.size());
    const std::string name = list.substr(at, end - at);
    EXPECT_TRUE(parse_kv_scheme(name)) << name;
    at = end + 2;
  }
}

TEST(KvSchemeContract, BothReadTheSameLayers) {
  for (const std::string_view name :
       {"turbo4,0-1=turbo8", "turbo8v4,3=f16,2-5=turbo3", "turbo4,", "turbo4,1",
        "turbo4,2-1=turbo8", "turbo4,1=turbo5", "turbo"}) {
    const Result<turbo::Scheme> theirs = turbo::parse_scheme(name);
    const Result<KvScheme> ours = parse_kv_scheme(name);
    ASSERT_EQ(theirs.has_value(), ours.has_value()) << name;
    for (int layer = 0; ours && layer < 8; ++layer) {
      const KvBits bits = ours->bits_of_layer(layer);
      EXPECT_EQ(theirs->bits_of_layer(layer), (turbo::Bits{bits.keys, bits.values})) << name;
    }
  }
}

TEST(KvSchemeContract, SizesAreThePlugins) {
  for (const int bits : {2, 3, 4, 8}) {
    for (int head_dim = 16; head_dim <= 1024; head_dim += 16) {
      for (const std::int64_t n_cells : {1, 16, 250, 256, 4096, 32768, 300000}) {
        for (const KvSide side : {KvSide::kKey, KvSide::kValue}) {
          const turbo::CacheShape shape{
              .side = side == KvSide::kKey ? turbo::Side::kKey : turbo::Side::kValue,
              .bits = bits,
              .head_dim = head_dim,
              .n_heads = 1,
              .n_cells = n_cells,
              .n_streams = 1};
          EXPECT_EQ(static_cast<std::size_t>(turbo_head_bytes(side, bits, head_dim, n_cells)),
                    turbo::CompressedCache::n_bytes(shape))
              << bits << " bits, head " << head_dim << ", " << n_cells << " cells";
        }
      }
    }
  }
}

TEST(KvSchemeContract, WeKnowWhatThePluginCanCompress) {
  for (int head_dim = 1; head_dim <= 1100; ++head_dim) {
    EXPECT_EQ(is_turbo_head(head_dim), turbo::Rotation::supports(head_dim)) << head_dim;
  }
  const auto shared_by = [](std::int64_t n_heads) {
    return can_compress({.layer = 0,
                         .n_heads = n_heads,
                         .n_kv_heads = 1,
                         .key_channels = 128,
                         .value_channels = 128});
  };
  EXPECT_TRUE(shared_by(turbo::kGroupMax));
  EXPECT_FALSE(shared_by(turbo::kGroupMax + 1));
}

}  // namespace
}  // namespace slipstream
