#include "device/fit/profile_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/hash2/sha2.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

namespace slipstream::turbo {
namespace {

HeadBasis basis_of(float number) {
  return {.mean = {number, 2}, .directions = {1, 0, number, 1}, .variances = {9, 1}};
}

KeyProfile small_profile() {
  KeyProfile profile;
  for (const int layer : {0, 3}) {
    LayerProfile& fitted = profile.emplace_back();
    fitted.layer = layer;
    fitted.head_dim = 2;
    fitted.print[5] = std::byte{7};
    fitted.heads = {basis_of(0.5F), basis_of(static_cast<float>(layer))};
  }
  return profile;
}

// The same bytes with a matching checksum.
std::vector<std::byte> signed_again(std::vector<std::byte> bytes) {
  boost::hash2::sha2_256 hash;
  hash.update(bytes.data(), bytes.size() - 32);
  const auto digest = hash.result();
  std::memcpy(bytes.data() + bytes.size() - 32, digest.data(), 32);
  return bytes;
}

void expect_same(const KeyProfile& left, const KeyProfile& right) {
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i].layer, right[i].layer);
    EXPECT_EQ(left[i].head_dim, right[i].head_dim);
    EXPECT_EQ(left[i].print, right[i].print);
    ASSERT_EQ(left[i].heads.size(), right[i].heads.size());
    for (std::size_t head = 0; head < left[i].heads.size(); ++head) {
      EXPECT_EQ(left[i].heads[head].mean, right[i].heads[head].mean);
      EXPECT_EQ(left[i].heads[head].directions, right[i].heads[head].directions);
      EXPECT_EQ(left[i].heads[head].variances, right[i].heads[head].variances);
    }
  }
}

TEST(ProfileFile, ComesBackAsItWasWritten) {
  const std::string path = testing::TempDir() + "/profile_file_test.keys";
  ASSERT_TRUE(write_profile(path, small_profile()).has_value());
  const Result<KeyProfile> read = read_profile(path);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  expect_same(*read, small_profile());
  std::filesystem::remove(path);
}

TEST(ProfileFile, EveryTruncationAndFlippedBitIsRefused) {
  const std::vector<std::byte> bytes = encode_profile(small_profile());
  ASSERT_TRUE(decode_profile(bytes).has_value());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(decode_profile(std::span(bytes).first(n)).has_value()) << n;
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_profile(longer).has_value());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::vector<std::byte> flipped = bytes;
    flipped[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(decode_profile(flipped).has_value()) << bit;
  }
}

// Sizes and numbers are checked even if the checksum matches.
TEST(ProfileFile, SizesAndNumbersAreChecked) {
  const std::vector<std::byte> bytes = encode_profile(small_profile());
  const auto with = [&](std::size_t offset, auto number) {
    std::vector<std::byte> changed = bytes;
    std::memcpy(changed.data() + offset, &number, sizeof(number));
    return decode_profile(signed_again(std::move(changed)));
  };
  constexpr std::size_t kFirstLayer = 16;
  constexpr std::size_t kFirstMean = kFirstLayer + 12 + 32;
  constexpr std::size_t kFirstVariance = kFirstMean + 6 * sizeof(float);
  EXPECT_TRUE(with(kFirstMean, 1.0F).has_value());
  EXPECT_FALSE(with(kFirstMean, std::numeric_limits<float>::quiet_NaN()).has_value());
  EXPECT_FALSE(with(kFirstVariance, 0.0F).has_value());
  for (const std::uint32_t size : {0U, 3U, 4096U, 0xffffffffU}) {
    EXPECT_FALSE(with(12, size).has_value()) << "layers " << size;
    EXPECT_FALSE(with(kFirstLayer + 4, size).has_value()) << "heads " << size;
    EXPECT_FALSE(with(kFirstLayer + 8, size).has_value()) << "head size " << size;
  }
  EXPECT_FALSE(with(kFirstLayer, 0xffffffffU).has_value());
  EXPECT_EQ(with(8, 2U).error().code, Code::kUnsupported);
}

// Otherwise a profile named /dev/null would replace the device, if root writes it.
TEST(ProfileFile, OnlyARegularFileIsReplaced) {
  const std::string path = testing::TempDir() + "/profile_file_test.fifo";
  ::unlink(path.c_str());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Result<void> written = write_profile(path, {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kInvalidArgument);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));
  ::unlink(path.c_str());
}

TEST(ProfileFile, AFileThatIsNoneSaysWhatToDo) {
  const std::string path = testing::TempDir() + "/profile_file_test.txt";
  EXPECT_EQ(read_profile(path).error().code, Code::kNotFound);
  std::ofstream(path) << "hello";
  const Error error = read_profile(path).error();
  EXPECT_EQ(error.code, Code::kCorrupt);
  EXPECT_EQ(error.message, path +
                               " is not a key profile: its first bytes are others; "
                               "`slipstream calibrate MODEL` makes one");
  EXPECT_EQ(read_profile(testing::TempDir()).error().code, Code::kCorrupt);
  EXPECT_FALSE(write_profile(path + "/none/profile.keys", small_profile()).has_value());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace slipstream::turbo
