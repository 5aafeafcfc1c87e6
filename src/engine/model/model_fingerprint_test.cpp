#include "engine/model/model_fingerprint.h"

#include <gtest/gtest.h>

#include "engine/forecast/test_gguf.h"
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

TEST(ModelFingerprint, IsAnotherWherePositionsAreRotatedOtherwise) {
  const auto of = [](const RopeScaling& rope, std::int64_t n_ctx) {
    return fingerprint_of(NEEDLE_MODEL, "turbo4", {}, {.rope = rope, .n_ctx = n_ctx});
  };
  const RopeScaling yarn{.type = "yarn", .freq_scale = 0.25F};
  ASSERT_TRUE(of(yarn, 0).has_value());
  EXPECT_EQ(*of({}, 0), *fingerprint_of(NEEDLE_MODEL, "turbo4"));
  EXPECT_NE(*of(yarn, 0), *of({}, 0));
  EXPECT_EQ(*of(yarn, 0), *of(yarn, 1 << 20)) << "no other rotations for long contexts";
  EXPECT_NE(*of(yarn, 0), *of({.type = "linear", .freq_scale = 0.25F}, 0));
  EXPECT_NE(*of(yarn, 0), *of({.type = "yarn", .freq_scale = 0.5F}, 0));
  EXPECT_NE(*of({.freq_base = 1e6F}, 0), *of({}, 0));
}

TEST(ModelFingerprint, IsAnotherWhereALongContextHasItsOwnRotations) {
  const TestFolder folder;
  const std::filesystem::path model = GgufMaker("phi3")
                                          .decoder("phi3", 1, 64, 2, 2, 32)
                                          .set("phi3.rope.scaling.original_context_length", 4096)
                                          .matrix("rope_factors_long.weight", 16, 1)
                                          .write(folder.path() / "model.gguf");
  const auto with_context = [&](std::int64_t n_ctx) {
    return fingerprint_of(model, "f16", {}, {.n_ctx = n_ctx});
  };
  ASSERT_TRUE(with_context(1024).has_value());
  EXPECT_EQ(*with_context(1024), *with_context(4096));
  EXPECT_NE(*with_context(4096), *with_context(4352));
  EXPECT_EQ(*with_context(4352), *with_context(65536));
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
