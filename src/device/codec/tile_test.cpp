#include "device/codec/tile.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace slipstream::turbo {
namespace {

std::vector<std::uint8_t> random_codes(std::mt19937& random, int bits, int head_dim) {
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(head_dim));
  for (std::uint8_t& code : codes) {
    code = static_cast<std::uint8_t>(random() % (1U << static_cast<unsigned>(bits)));
  }
  return codes;
}

class Tile : public testing::TestWithParam<std::tuple<Side, int, int>> {};

// Tokens written in any order, each twice, are read back; no two codes share bits.
TEST_P(Tile, EveryTokenComesBack) {
  const auto [side, bits, head_dim] = GetParam();
  const TileLayout layout(side, bits, head_dim);
  std::mt19937 random(7);
  std::vector<std::uint8_t> tile(layout.code_bytes(), 0xa5);
  std::vector<std::vector<std::uint8_t>> written(kTileTokens);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kTileTokens; ++i) {
      const int token = (i * 5 + round * 3) % kTileTokens;
      written[static_cast<std::size_t>(token)] = random_codes(random, bits, head_dim);
      layout.put(tile, token, written[static_cast<std::size_t>(token)]);
    }
  }
  std::vector<std::uint8_t> read(static_cast<std::size_t>(head_dim));
  for (int token = 0; token < kTileTokens; ++token) {
    layout.get(tile, token, read);
    EXPECT_EQ(read, written[static_cast<std::size_t>(token)]) << "token " << token;
  }
}

// A token that is taken out of one tile and placed in another keeps its codes. Its neighbours are
// not changed.
TEST_P(Tile, ATokenMovesAlone) {
  const auto [side, bits, head_dim] = GetParam();
  const TileLayout layout(side, bits, head_dim);
  std::mt19937 random(8);
  const std::vector<std::uint8_t> codes = random_codes(random, bits, head_dim);
  const std::vector<std::uint8_t> neighbour = random_codes(random, bits, head_dim);
  std::vector<std::uint8_t> from(layout.code_bytes());
  layout.put(from, 5, codes);
  std::vector<std::uint8_t> packed(layout.token_bytes());
  layout.take(from, 5, packed);
  std::vector<std::uint8_t> to(layout.code_bytes());
  layout.put(to, 11, neighbour);
  layout.place(to, 12, packed);
  std::vector<std::uint8_t> read(codes.size());
  layout.get(to, 12, read);
  EXPECT_EQ(read, codes);
  layout.get(to, 11, read);
  EXPECT_EQ(read, neighbour);
}

INSTANTIATE_TEST_SUITE_P(All, Tile,
                         testing::Combine(testing::Values(Side::kKey, Side::kValue),
                                          testing::Values(2, 3, 4, 8),
                                          testing::Values(64, 80, 96, 128, 192, 256)));

// The worked example of docs/formats/kv-tile.md.
TEST(TileExample, FourBitKeysAndValues) {
  std::vector<std::uint8_t> codes(128);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i % 16);

  const TileLayout keys(Side::kKey, 4, 128);
  EXPECT_EQ(keys.code_bytes(), 1024U);
  std::vector<std::uint8_t> tile(keys.code_bytes());
  keys.put(tile, 3, codes);
  // Token 3 is slot 3: bytes 12..15 of each group of 64. Channels 8..15 are the second group.
  EXPECT_EQ(tile[12], 0x40);       // channels 0 (low) and 4 (high)
  EXPECT_EQ(tile[15], 0x73);       // channels 3 and 7
  EXPECT_EQ(tile[64 + 12], 0xc8);  // channels 8 and 12
  EXPECT_EQ(tile[16], 0);          // token 4 is untouched
  std::vector<std::uint8_t> packed(keys.token_bytes());
  keys.take(tile, 3, packed);
  EXPECT_EQ(packed.size(), 64U);
  EXPECT_EQ(packed[0], 0x40);
  EXPECT_EQ(packed[3], 0x73);
  EXPECT_EQ(packed[4], 0xc8);

  const TileLayout values(Side::kValue, 4, 128);
  std::vector<std::uint8_t> value_tile(values.code_bytes());
  values.put(value_tile, 6, codes);
  // Channel 2 is slot 2; token 6 = 4 * 1 + 2 is byte 2, high nibble, of the first group.
  EXPECT_EQ(value_tile[2 * 4 + 2], 0x20);
  // Channel 18 is slot 2 again, in the third group: two groups per 16 channels.
  EXPECT_EQ(value_tile[2 * 64 + 2 * 4 + 2], 0x20);
  std::vector<std::uint8_t> packed_value(values.token_bytes());
  values.take(value_tile, 6, packed_value);
  EXPECT_EQ(packed_value, packed);  // a packed value has the form of a packed key
}

TEST(TileExample, SizesCarryTheRatios) {
  EXPECT_EQ(TileLayout(Side::kKey, 2, 128).code_bytes(), 512U);
  EXPECT_EQ(TileLayout(Side::kKey, 3, 128).code_bytes(), 768U);
  EXPECT_EQ(TileLayout(Side::kKey, 8, 128).code_bytes(), 2048U);
  EXPECT_EQ(TileLayout(Side::kValue, 3, 80).code_bytes(), 512U);  // 5 + 3 groups: padded to 96
}

}  // namespace
}  // namespace slipstream::turbo
