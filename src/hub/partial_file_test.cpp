#include "hub/partial_file.h"

#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "hub/file_hash.h"
#include "hub/test_cache.h"

namespace slipstream::hub {
namespace {

constexpr std::uint64_t kChunk = std::uint64_t{256} << 10;
constexpr std::uint64_t kBytes = 2 * kChunk + 1000;

class Partial : public testing::Test {
 protected:
  [[nodiscard]] PartialFile open(std::uint64_t n_bytes = kBytes) const {
    return std::move(PartialFile::open(data_, map_, n_bytes).value());
  }
  static void fill(PartialFile& file, std::size_t chunk) {
    const std::vector<std::byte> bytes(file.chunk_end(chunk) - file.chunk_begin(chunk),
                                       std::byte{'x'});
    ASSERT_TRUE(file.write(file.chunk_begin(chunk), bytes));
    ASSERT_TRUE(file.finish_chunk(chunk));
  }

  TestCache folder_;
  std::filesystem::path data_ = folder_.path() / "data";
  std::filesystem::path map_ = folder_.path() / "map";
};

TEST_F(Partial, ChunksGrowWithTheFile) {
  EXPECT_EQ(chunk_bytes_for(1), kChunk);
  EXPECT_EQ(chunk_bytes_for(std::uint64_t{100} << 20), std::uint64_t{512} << 10);
  EXPECT_EQ(chunk_bytes_for(std::uint64_t{40} << 30), std::uint64_t{8} << 20);
}

TEST_F(Partial, ReopenedKnowsTheChunksThatWereFinished) {
  {
    PartialFile file = open();
    EXPECT_EQ(file.n_chunks(), 3U);
    EXPECT_EQ(file.done_bytes(), 0U);
    fill(file, 2);
    const std::vector<std::byte> half(1000, std::byte{'y'});
    ASSERT_TRUE(file.write(0, half));  // not finished
  }
  PartialFile file = open();
  EXPECT_FALSE(file.has_chunk(0));
  EXPECT_TRUE(file.has_chunk(2));
  EXPECT_EQ(file.done_bytes(), 1000U);
  EXPECT_EQ(file.chunk_end(2), kBytes);
  fill(file, 0);
  fill(file, 1);
  ASSERT_TRUE(file.publish(folder_.path() / "whole"));
  EXPECT_FALSE(std::filesystem::exists(map_));
  EXPECT_FALSE(std::filesystem::exists(data_));
  EXPECT_EQ(read_small_file((folder_.path() / "whole").string()), std::string(kBytes, 'x'));
}

TEST_F(Partial, AMapThatDoesNotFitIsBegunAnew) {
  const auto with_a_chunk = [&] {
    PartialFile file = open();
    fill(file, 1);
  };
  with_a_chunk();
  EXPECT_EQ(open(kBytes + 1).done_bytes(), 0U);  // another size
  with_a_chunk();
  std::filesystem::remove(data_);  // marks without data
  EXPECT_EQ(open().done_bytes(), 0U);
  with_a_chunk();
  std::filesystem::resize_file(map_, 65);  // a crash while the map was made
  EXPECT_EQ(open().done_bytes(), 0U);
  with_a_chunk();
  TestCache::write(map_, "");
  EXPECT_EQ(open().done_bytes(), 0U);
  with_a_chunk();
  EXPECT_EQ(open().done_bytes(), kChunk);
}

// More than any file system here can hold in one file, or has free.
TEST_F(Partial, WhatNoDiskHoldsLeavesNothingBehind) {
  const Result<PartialFile> file = PartialFile::open(data_, map_, std::uint64_t{1} << 49);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Code::kIo);
  EXPECT_NE(file.error().message.find("cannot write " + data_.string()), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(data_));
  EXPECT_FALSE(std::filesystem::exists(map_));
}

// The hashes that sha256sum and git hash-object give for "hello\n".
TEST_F(Partial, HashesAreThoseOfTheHub) {
  TestCache::write(data_, "hello\n");
  EXPECT_EQ(hash_file(data_, ContentHash::Kind::kSha256).value(),
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
  EXPECT_EQ(hash_file(data_, ContentHash::Kind::kGitBlob).value(),
            "ce013625030ba8dba906f756967f9e9ca394464a");
}

}  // namespace
}  // namespace slipstream::hub
