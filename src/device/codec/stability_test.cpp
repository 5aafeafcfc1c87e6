// A cache is decoded, rotated back and rounded to f16 when it is saved, and rotated and encoded
// when it is restored. The restored codes and scales must be the saved ones, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <tuple>
#include <vector>

#include "base/format.h"
#include "device/codec/f16.h"
#include "device/codec/rotation.h"
#include "device/codec/test_vectors.h"

namespace slipstream::turbo {
namespace {

std::vector<float> saved_and_restored(const Rotation& rotation, std::vector<float> x) {
  rotation.inverse(x);
  for (float& value : x) value = f16_to_float(float_to_f16(value));
  rotation.forward(x);
  return x;
}

class Stability : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  const int bits_ = std::get<0>(GetParam());
  const int dim_ = std::get<1>(GetParam());
};
// 1008 has six blocks, the last of 16: an outlier in that block is far above the largest level.
INSTANTIATE_TEST_SUITE_P(BitsAndDim, Stability,
                         testing::Combine(testing::Values(2, 3, 4, 8),
                                          testing::Values(16, 64, 80, 96, 128, 192, 256, 576,
                                                          1008)),
                         [](const auto& instance) {
                           return format_text("{}bits{}", std::get<0>(instance.param),
                                              std::get<1>(instance.param));
                         });

TEST_P(Stability, SavingAndRestoringChangesNothing) {
  const Rotation rotation(dim_);
  TestVectors vectors(static_cast<unsigned>(dim_));
  for (int n = 0; n < 200; ++n) {
    for (const Kind kind : kKinds) {
      std::vector<float> x = vectors.draw(kind, dim_);
      // Scales range from the largest whose values f16 can hold to those near f16's subnormals.
      const float factor = std::exp2(static_cast<float>(vectors.below(19)) - 11);
      for (float& value : x) value *= factor;
      rotation.forward(x);
      const Encoded encoded(bits_, x);
      const std::vector<float> decoded = encoded.decoded();
      ASSERT_EQ(encoded, Encoded(bits_, decoded)) << name(kind) << ' ' << n;
      ASSERT_EQ(encoded, Encoded(bits_, saved_and_restored(rotation, decoded))) << name(kind) << n;
    }
  }
}

// Vectors that no rotation produces, with some components much larger than the others.
TEST_P(Stability, HoldsForSteepRotatedVectors) {
  const Rotation rotation(dim_);
  TestVectors vectors(static_cast<unsigned>(dim_) + 1);
  for (int n = 0; n < 500; ++n) {
    std::vector<float> x = vectors.draw(Kind::kGaussian, dim_);
    const float steepness = std::abs(vectors.normal()) * 30;
    for (std::size_t spikes = vectors.below(x.size() / 2); spikes > 0; --spikes) {
      x[vectors.below(x.size())] = steepness * vectors.normal();
    }
    const Encoded encoded(bits_, x);
    const std::vector<float> decoded = encoded.decoded();
    ASSERT_EQ(encoded, Encoded(bits_, decoded)) << n;
    ASSERT_EQ(encoded, Encoded(bits_, saved_and_restored(rotation, decoded))) << n;
  }
}

}  // namespace
}  // namespace slipstream::turbo
