#include "retrieval/dense/packed_vector.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

namespace slipstream {
namespace {

std::vector<float> random_unit_vector(std::mt19937& random, std::size_t n) {
  std::normal_distribution<float> normal;
  std::vector<float> vector(n);
  double squares = 0;
  for (float& value : vector) {
    value = normal(random);
    squares += static_cast<double>(value) * value;
  }
  for (float& value : vector) value = static_cast<float>(value / std::sqrt(squares));
  return vector;
}

float packed_cosine(PackedVector a, PackedVector b) {
  a.codes.resize(padded(a.codes.size()));
  b.codes.resize(padded(b.codes.size()));
  const auto dot = dot_of_codes(a.codes.data(), b.codes.data(), a.codes.size());
  return static_cast<float>(dot) * a.scale * b.scale;
}

TEST(PackedVector, KeepsCosines) {
  std::mt19937 random(1);
  for (const std::size_t n :
       {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{384}, std::size_t{1000}}) {
    for (int i = 0; i < 50; ++i) {
      const std::vector<float> a = random_unit_vector(random, n);
      const std::vector<float> b = random_unit_vector(random, n);
      double expected = 0;
      for (std::size_t j = 0; j < n; ++j) expected += static_cast<double>(a[j]) * b[j];
      EXPECT_NEAR(packed_cosine(pack(a), pack(b)), expected, 0.01) << n;
      EXPECT_NEAR(packed_cosine(pack(a), pack(a)), 1, 0.01) << n;
    }
  }
}

TEST(PackedVector, BytesComeBack) {
  std::mt19937 random(2);
  const PackedVector vector = pack(random_unit_vector(random, 100));
  const std::vector<std::byte> bytes = bytes_of(vector);
  const auto read = read_packed(bytes, 100);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->scale, vector.scale);
  EXPECT_EQ(read->codes, vector.codes);
}

TEST(PackedVector, OtherBytesAreNoVector) {
  std::vector<std::byte> bytes = bytes_of(pack(std::vector<float>{0.6F, 0.8F}));
  EXPECT_FALSE(read_packed(bytes, 3));
  EXPECT_FALSE(read_packed(bytes, 1));
  EXPECT_FALSE(read_packed(bytes, 0));
  EXPECT_FALSE(read_packed(bytes, -4));
  EXPECT_FALSE(read_packed({}, 2));
  bytes[2] = bytes[3] = std::byte{0xFF};  // a scale that is not a number
  EXPECT_FALSE(read_packed(bytes, 2));
}

TEST(PackedVector, WhatIsNoNumberIsNearNothing) {
  const float infinite = std::numeric_limits<float>::infinity();
  for (const float wrong : {infinite, std::nanf("")}) {
    const PackedVector vector = pack(std::vector<float>{1, wrong});
    EXPECT_EQ(vector.scale, 0);
    EXPECT_THAT(vector.codes, testing::Each(0));
  }
  EXPECT_EQ(pack(std::vector<float>{0, 0}).scale, 0);
}

}  // namespace
}  // namespace slipstream
