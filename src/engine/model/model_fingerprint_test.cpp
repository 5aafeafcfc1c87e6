#include "engine/model/model_fingerprint.h"

#include <gtest/gtest.h>

#include "engine/prefixes/disk/disk_tier_test_support.h"

namespace slipstream {
namespace {

TEST(ModelFingerprint, IsThatOfTheSameFileAndScheme) {
  const auto fingerprint = fingerprint_of(NEEDLE_MODEL, "turbo4");
  ASSERT_TRUE(fingerprint.has_value());
  EXPECT_EQ(*fingerprint, *fingerprint_of(NEEDLE_MODEL, "turbo4"));
  EXPECT_NE(*fingerprint, *fingerprint_of(NEEDLE_MODEL, "turbo3"));
  EXPECT_NE(*fingerprint, *fingerprint_of(NEEDLE_MODEL, "turbo4", /*key_profile=*/NEEDLE_MODEL));
  EXPECT_EQ(*fingerprint, *fingerprint_of(NEEDLE_MODEL, "turbo4", "/nonexistent"));

  const TemporaryDirectory directory;
  const std::string copy = directory.path() + "/model.gguf";
  std::vector<char> bytes = file_bytes(NEEDLE_MODEL);
  write_file_bytes(copy, bytes);
  EXPECT_EQ(*fingerprint, *fingerprint_of(copy, "turbo4")) << "its name and place do not matter";
  bytes.back() ^= 1;  // in the last tensor
  write_file_bytes(copy, bytes);
  EXPECT_NE(*fingerprint, *fingerprint_of(copy, "turbo4"));
}

TEST(ModelFingerprint, OfTheModelAloneIsAnother) {
  const auto fingerprint = fingerprint_of_model(NEEDLE_MODEL);
  ASSERT_TRUE(fingerprint.has_value());
  EXPECT_EQ(*fingerprint, *fingerprint_of_model(NEEDLE_MODEL));
  EXPECT_NE(*fingerprint, *fingerprint_of(NEEDLE_MODEL, ""));
}

TEST(ModelFingerprint, IsWrittenInHexadecimalDigits) {
  Fingerprint fingerprint = {};
  fingerprint[0] = std::byte{0xa5};
  fingerprint[31] = std::byte{0x0f};
  EXPECT_EQ(to_hex(fingerprint), "a5" + std::string(60, '0') + "0f");
}

TEST(ModelFingerprint, OfNoModelThereIsNone) {
  EXPECT_FALSE(fingerprint_of_model("/nonexistent").has_value());
  EXPECT_FALSE(fingerprint_of("/nonexistent", "f16").has_value());
}

}  // namespace
}  // namespace slipstream
