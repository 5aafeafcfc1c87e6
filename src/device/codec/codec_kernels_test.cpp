// Every instruction set gives the bytes of the scalar codec.
#include "device/codec/codec_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "device/codec/test_bases.h"
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

// Ordinary vectors, vectors with an outlier, tiny, huge, decoded and hostile vectors.
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

TEST(CodecKernels, EncodeFittedAsTheReferenceDoes) {
  for (const ChannelClasses& classes : all_fitted_layouts()) {
    const int dim = TileLayout(Side::kKey, classes).head_dim();
    Guarded<float> z(static_cast<std::size_t>(dim));
    Guarded<float> weights(static_cast<std::size_t>(dim));
    for (std::size_t i = 0; i < weights.span().size(); ++i) {
      weights.data()[i] = std::exp2(-0.1F * static_cast<float>(i));
    }
    Guarded<std::uint8_t> codes(static_cast<std::size_t>(dim));
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(dim));
    for (const std::vector<float>& input : vectors(4, dim)) {
      std::ranges::transform(input, z.data(), [](float x) { return 30 * x; });
      const std::uint16_t scale = encode_fitted(classes, weights.span(), z.span(), expected);
      on_every_target([&] {
        std::ranges::fill(codes.span(), std::uint8_t{0xee});
        EXPECT_EQ(encode_fitted_fast(classes, weights.span(), z.span(), codes.span()), scale);
        EXPECT_TRUE(std::ranges::equal(codes.span(), expected)) << dim;
      });
    }
  }
}

TEST(CodecKernels, MultiplyAMatrix) {
  std::mt19937 random(2);
  for (const std::size_t dim : {16U, 48U, 64U, 128U}) {
    for (const std::size_t n : {1U, 2U, 3U, 8U, 13U}) {
      std::vector<float> columns(dim * dim);
      Guarded<float> x(n * dim);
      Guarded<float> y(n * dim);
      fill_gauss(random, columns);
      fill_gauss(random, x.span());
      on_every_target([&] {
        multiply_fast(columns, dim, x.span(), y.span());
        for (std::size_t i = 0; i < n * dim; ++i) {
          double sum = 0;
          for (std::size_t column = 0; column < dim; ++column) {
            sum += static_cast<double>(columns[column * dim + i % dim]) *
                   static_cast<double>(x.data()[i / dim * dim + column]);
          }
          EXPECT_NEAR(y.data()[i], sum, 1e-4) << dim << ' ' << n;
        }
      });
    }
  }
}

// Layouts of both sides, all widths, and fitted keys.
std::vector<TileLayout> layouts() {
  std::vector<TileLayout> all;
  for (const int dim : kDims) {
    for (const int bits : {2, 3, 4, 8}) {
      for (const Side side : {Side::kKey, Side::kValue}) all.emplace_back(side, bits, dim);
    }
  }
  for (const ChannelClasses& classes : all_fitted_layouts()) all.emplace_back(Side::kKey, classes);
  return all;
}

// One code for each channel.
std::vector<std::uint8_t> random_codes(std::mt19937& random, const TileLayout& layout) {
  std::vector<std::uint8_t> codes;
  for (const auto [bits, n_channels] : layout.classes()) {
    for (int i = 0; i < n_channels; ++i) {
      codes.push_back(static_cast<std::uint8_t>(random() % (1U << static_cast<unsigned>(bits))));
    }
  }
  return codes;
}

std::vector<std::uint8_t> random_bytes(std::mt19937& random, std::size_t n) {
  std::vector<std::uint8_t> bytes(n);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

TEST(CodecKernels, PutAsTheReferenceDoes) {
  std::mt19937 random(9);
  for (const TileLayout& layout : layouts()) {
    Guarded<std::uint8_t> tile(layout.code_bytes());
    std::vector<std::uint8_t> expected(layout.code_bytes(), 0xa5);
    on_every_target([&] {
      std::ranges::fill(expected, std::uint8_t{0xa5});
      std::ranges::fill(tile.span(), std::uint8_t{0xa5});
      for (const int token : {3, 0, 15, 7, 3, 8}) {
        const std::vector<std::uint8_t> codes = random_codes(random, layout);
        layout.put(expected, token, codes);
        put_fast(layout, tile.span(), token, codes);
      }
      // Only codes are compared: the padding behind a key's last channel may hold anything.
      std::vector<std::uint8_t> read(static_cast<std::size_t>(layout.head_dim()));
      std::vector<std::uint8_t> read_expected(read.size());
      for (int token = 0; token < kTileTokens; ++token) {
        layout.get(tile.span(), token, read);
        layout.get(expected, token, read_expected);
        EXPECT_EQ(read, read_expected) << "token " << token;
      }
    });
  }
}

// Tokens are read from a tile, as codes and packed, and placed in another one, whose other tokens
// keep their codes.
TEST(CodecKernels, GetTakeAndPlaceAsTheReferenceDoes) {
  std::mt19937 random(10);
  for (const TileLayout& layout : layouts()) {
    SCOPED_TRACE(testing::Message()
                 << "classes " << layout.classes().n << ", bits " << layout.classes().all[0].bits
                 << ", head " << layout.head_dim());
    const std::size_t n = layout.token_bytes();
    Guarded<std::uint8_t> tile(layout.code_bytes());
    Guarded<std::uint8_t> codes(static_cast<std::size_t>(layout.head_dim()));
    Guarded<std::uint8_t> packed(n);
    on_every_target([&] {
      // The kernels write the tile, so that its padding is what they leave there.
      for (int token = 0; token < kTileTokens; ++token) {
        put_fast(layout, tile.span(), token, random_codes(random, layout));
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
      for (int token = 0; token < kTileTokens; ++token) {  // placing one changed no other
        std::vector<std::uint8_t> expected(codes.span().size());
        layout.get(tile.span(), token, expected);
        layout.get(other, (token * 7 + 3) % kTileTokens, codes.span());
        EXPECT_TRUE(std::ranges::equal(codes.span(), expected)) << "kept " << token;
      }
    });
  }
}

}  // namespace
}  // namespace slipstream::turbo
