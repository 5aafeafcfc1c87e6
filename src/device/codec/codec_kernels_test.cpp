// Every instruction set gives the bytes of the scalar codec.
#include "device/codec/codec_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "device/codec/vector_codec.h"
#include "device/kernel_test_support.h"

namespace slipstream::turbo {
namespace {

constexpr int kDims[] = {16, 32, 64, 80, 96, 128, 192, 256, 576};

void fill_gauss(std::mt19937& random, std::span<float> x, float deviation = 1) {
  std::normal_distribution<float> gauss(0, deviation);
  for (float& value : x) value = gauss(random);
}

TEST(CodecKernels, RotateAsTheReferenceDoes) {
  std::mt19937 random(1);
  for (const int dim : kDims) {
    const Rotation rotation(dim);
    Guarded<float> memory(static_cast<std::size_t>(dim));
    std::vector<float> input(static_cast<std::size_t>(dim));
    fill_gauss(random, input);
    std::vector<float> forward = input;
    rotation.forward(forward);
    std::vector<float> inverse = input;
    rotation.inverse(inverse);
    on_every_target([&] {
      std::ranges::copy(input, memory.data());
      rotate_fast(rotation, memory.span());
      EXPECT_TRUE(std::ranges::equal(memory.span(), forward)) << dim;
      std::ranges::copy(input, memory.data());
      rotate_back_fast(rotation, memory.span());
      EXPECT_TRUE(std::ranges::equal(memory.span(), inverse)) << dim;
    });
  }
}

// Ordinary vectors, ones with an outlier, tiny and huge ones, decoded ones, and hostile ones.
std::vector<std::vector<float>> vectors(int bits, int dim) {
  std::mt19937 random(static_cast<unsigned>(bits * 1000 + dim));
  const auto n = static_cast<std::size_t>(dim);
  std::vector<std::vector<float>> all;
  for (int i = 0; i < 40; ++i) {
    std::vector<float>& x = all.emplace_back(n);
    fill_gauss(random, x, std::exp2(static_cast<float>(i % 13) - 8));
    if (i % 4 == 1) x[random() % n] *= 30;
    if (i % 4 == 2) {
      std::vector<std::uint8_t> codes(n);
      const std::uint16_t scale = encode(bits, x, codes);
      decode(bits, scale, codes, x);
    }
  }
  all.emplace_back(n);  // zero
  std::vector<float>& odd = all.emplace_back(n, 1.0F);
  odd[0] = std::numeric_limits<float>::infinity();
  odd[n / 2] = std::numeric_limits<float>::quiet_NaN();
  odd[n - 1] = -3e38F;
  all.emplace_back(n, 1e-30F);
  return all;
}

TEST(CodecKernels, EncodeAsTheReferenceDoes) {
  for (const int bits : {2, 3, 4, 8}) {
    for (const int dim : kDims) {
      Guarded<float> x(static_cast<std::size_t>(dim));
      Guarded<std::uint8_t> codes(static_cast<std::size_t>(dim));
      std::vector<std::uint8_t> expected(static_cast<std::size_t>(dim));
      for (const std::vector<float>& input : vectors(bits, dim)) {
        const std::uint16_t scale = encode(bits, input, expected);
        std::ranges::copy(input, x.data());
        on_every_target([&] {
          std::ranges::fill(codes.span(), std::uint8_t{0xee});
          EXPECT_EQ(encode_fast(bits, x.span(), codes.span()), scale) << bits << ' ' << dim;
          EXPECT_TRUE(std::ranges::equal(codes.span(), expected)) << bits << ' ' << dim;
        });
      }
    }
  }
}

TEST(CodecKernels, PutAsTheReferenceDoes) {
  std::mt19937 random(9);
  for (const Side side : {Side::kKey, Side::kValue}) {
    for (const int bits : {2, 3, 4, 8}) {
      for (const int dim : {16, 64, 80, 96, 128, 256}) {
        const TileLayout layout(side, bits, dim);
        Guarded<std::uint8_t> tile(layout.code_bytes());
        std::vector<std::uint8_t> expected(layout.code_bytes(), 0xa5);
        std::vector<std::uint8_t> codes(static_cast<std::size_t>(dim));
        on_every_target([&] {
          std::ranges::fill(expected, std::uint8_t{0xa5});
          std::ranges::fill(tile.span(), std::uint8_t{0xa5});
          for (const int token : {3, 0, 15, 7, 3, 8}) {
            for (std::uint8_t& code : codes) {
              code = static_cast<std::uint8_t>(random() % (1U << static_cast<unsigned>(bits)));
            }
            layout.put(expected, token, codes);
            put_fast(layout, tile.span(), token, codes);
          }
          // A key's padding behind the last channel is its token's own, and free.
          std::vector<std::uint8_t> read(codes.size());
          std::vector<std::uint8_t> read_expected(codes.size());
          for (int token = 0; token < kTileTokens; ++token) {
            layout.get(tile.span(), token, read);
            layout.get(expected, token, read_expected);
            EXPECT_EQ(read, read_expected) << "token " << token;
          }
        });
      }
    }
  }
}

std::vector<std::uint8_t> random_bytes(std::mt19937& random, std::size_t n) {
  std::vector<std::uint8_t> bytes(n);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

// Out of a tile, as codes and packed, and into another one, whose other tokens stay.
TEST(CodecKernels, GetTakeAndPlaceAsTheReferenceDoes) {
  std::mt19937 random(10);
  for (const Side side : {Side::kKey, Side::kValue}) {
    for (const int bits : {2, 3, 4, 8}) {
      for (const int dim : kDims) {
        SCOPED_TRACE(testing::Message() << "bits " << bits << ", head " << dim);
        const TileLayout layout(side, bits, dim);
        const std::size_t n = layout.token_bytes();
        Guarded<std::uint8_t> tile(layout.code_bytes());
        Guarded<std::uint8_t> codes(static_cast<std::size_t>(dim));
        Guarded<std::uint8_t> packed(n);
        on_every_target([&] {
          // Written, so that padding is what the kernels leave there.
          for (int token = 0; token < kTileTokens; ++token) {
            std::vector<std::uint8_t> written = random_bytes(random, codes.span().size());
            for (std::uint8_t& code : written) code &= static_cast<std::uint8_t>((1 << bits) - 1);
            put_fast(layout, tile.span(), token, written);
          }
          std::vector<std::uint8_t> other = random_bytes(random, layout.code_bytes());
          for (int token = 0; token < kTileTokens; ++token) {
            std::vector<std::uint8_t> expected(codes.span().size());
            layout.get(tile.span(), token, expected);
            get_fast(layout, tile.span(), token, codes.span());
            EXPECT_TRUE(std::ranges::equal(codes.span(), expected)) << "codes of " << token;
            std::vector<std::uint8_t> taken(n);
            layout.take(tile.span(), token, taken);
            take_fast(layout, tile.span(), token, packed.span());
            EXPECT_TRUE(std::ranges::equal(packed.span(), taken)) << "token " << token;
            const int to = (token * 7 + 3) % kTileTokens;
            place_fast(layout, other, to, packed.span());
            layout.get(other, to, codes.span());
            EXPECT_TRUE(std::ranges::equal(codes.span(), expected)) << "placed " << token;
          }
          for (int token = 0; token < kTileTokens; ++token) {  // none has touched another
            std::vector<std::uint8_t> expected(codes.span().size());
            layout.get(tile.span(), token, expected);
            layout.get(other, (token * 7 + 3) % kTileTokens, codes.span());
            EXPECT_TRUE(std::ranges::equal(codes.span(), expected)) << "kept " << token;
          }
        });
      }
    }
  }
}

}  // namespace
}  // namespace slipstream::turbo
