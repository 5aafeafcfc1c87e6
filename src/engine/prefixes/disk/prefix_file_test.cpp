#include "engine/prefixes/disk/prefix_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/format.h"
#include "base/zstd_frame.h"
#include "engine/prefixes/disk/disk_tier_test_support.h"

namespace slipstream {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Content {
  PrefixHead head;
  std::vector<std::byte> state;
};

Result<void> always(std::uint64_t /*n_written*/, std::uint64_t /*n_more*/) { return {}; }

class PrefixFiles : public testing::Test {
 protected:
  // In memory: thousands of damaged files would keep a disk busy.
  [[nodiscard]] std::string path() const { return format_text("/proc/self/fd/{}", file_.get()); }

  std::uint64_t write(const PrefixHead& head, const std::vector<std::byte>& state) {
    const Result<UniqueFd> fd = open_file(path(), O_WRONLY | O_TRUNC);
    SLIP_CHECK(fd.has_value(), "cannot create the file");
    const Result<std::uint64_t> n_bytes = write_prefix_file(fd->get(), head, state, always);
    SLIP_CHECK(n_bytes.has_value(), "cannot write the file");
    EXPECT_EQ(std::filesystem::file_size(path()), *n_bytes);
    EXPECT_LE(*n_bytes, prefix_file_bytes_max(head.tokens.size(), state.size()));
    return *n_bytes;
  }

  [[nodiscard]] Result<Content> read(const DiskLimits& limits = kDiskLimits) const {
    Result<UniqueFd> fd = open_file(path(), O_RDONLY);
    SLIP_CHECK(fd.has_value(), "cannot open the file");
    const Result<PrefixFile> file = PrefixFile::open(std::move(*fd), limits);
    if (!file) return std::unexpected(file.error());
    Content content = {.head = file->head(),
                       .state = std::vector<std::byte>(file->head().state_bytes)};
    if (Result<void> read = file->read_state(content.state); !read) {
      return std::unexpected(std::move(read.error()));
    }
    return content;
  }

  UniqueFd file_{::memfd_create("prefix", MFD_CLOEXEC)};
};

PrefixHead head_of(std::vector<Token> tokens, const std::vector<std::byte>& state) {
  return {.fingerprint = kFingerprint,
          .salt = 0x1122334455667788,
          .tokens = std::move(tokens),
          .state_bytes = state.size()};
}

void expect_equal(const Content& content, const PrefixHead& head,
                  const std::vector<std::byte>& state) {
  EXPECT_EQ(content.head.fingerprint, head.fingerprint);
  EXPECT_EQ(content.head.salt, head.salt);
  EXPECT_EQ(content.head.tokens, head.tokens);
  EXPECT_EQ(content.head.state_bytes, head.state_bytes);
  EXPECT_TRUE(content.state == state);
}

TEST_F(PrefixFiles, GiveBackWhatWasWritten) {
  for (const std::size_t n_bytes : {std::size_t{1}, kMiB - 1, kMiB, kMiB + 1, 3 * kMiB + 12345}) {
    const std::vector<std::byte> state = sample_state(n_bytes, n_bytes);
    const PrefixHead head = head_of({-1, 0, 7, 0x7fffffff}, state);
    write(head, state);
    const Result<Content> content = read();
    ASSERT_TRUE(content) << content.error().message;
    expect_equal(*content, head, state);
  }
}

TEST_F(PrefixFiles, ZeroesTakeAlmostNoSpace) {
  const std::vector<std::byte> state(64 * kMiB);
  const PrefixHead head = head_of(std::vector<Token>(1000, 5), state);
  EXPECT_LT(write(head, state), state.size() / 5000);
  expect_equal(*read(), head, state);
}

TEST_F(PrefixFiles, AreFilesThatZstdCanCheckAndUnpack) {
  const std::vector<std::byte> state = sample_state(1, kMiB + 5);
  write(head_of({1, 2}, state), state);
  const std::vector<char> file = file_bytes(path());
  std::vector<std::byte> unpacked(state.size() + 56 + 2 * 4 + 2 * 4);
  ASSERT_EQ(ZSTD_decompress(unpacked.data(), unpacked.size(), file.data(), file.size()),
            unpacked.size());
  EXPECT_TRUE(std::equal(state.begin(), state.end(), unpacked.begin()));
}

// The example of docs/formats/prefix-file.md.
TEST_F(PrefixFiles, ExampleOfTheDocument) {
  const std::vector<std::byte> state = {std::byte{0xaa}, std::byte{0xbb}, std::byte{0xcc}};
  PrefixHead head = head_of({1, 2, 515}, state);
  std::iota(reinterpret_cast<unsigned char*>(head.fingerprint.begin()),
            reinterpret_cast<unsigned char*>(head.fingerprint.end()), 0);
  write(head, state);
  const std::vector<char> file = file_bytes(path());
  const auto hex = [](std::span<const char> bytes) {
    std::string text;
    for (const char byte : bytes) text += format_text("{:02x}", static_cast<unsigned char>(byte));
    return text;
  };
  const std::span<const char> all(file);
  EXPECT_EQ(hex(all.first(16)), "502a4d180800000001000000534c4950");
  EXPECT_EQ(hex(all.subspan(16, 16)), "28b52ffd2403190000aabbcc7a1b2338");
  const std::size_t block_bytes = 16;
  const std::size_t index_bytes = file.size() - 32 - block_bytes;
  EXPECT_EQ(hex(all.last(16)), format_text("502a4d1808000000{:02x}00000050494c53", index_bytes));
  std::vector<std::byte> index(72);
  ASSERT_TRUE(
      FrameDecoder().decode(std::as_bytes(all.subspan(16 + block_bytes, index_bytes)), index));
  EXPECT_EQ(hex({reinterpret_cast<const char*>(index.data()), index.size()}),
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
            "8877665544332211"
            "0300000000000000"
            "03000000"
            "01000000"
            "010000000200000003020000"
            "10000000");
}

// --- damage

TEST_F(PrefixFiles, EveryFlippedBitIsNoticedOrChangesNothing) {
  std::vector<std::byte> state = sample_state(3, 300);
  state.resize(600);  // the second half compresses
  const PrefixHead head = head_of({1, 2, 3, 4, 5}, state);
  write(head, state);
  const std::vector<char> whole = file_bytes(path());
  int n_unnoticed = 0;
  for (std::size_t i = 0; i < whole.size() * 8; ++i) {
    std::vector<char> flipped = whole;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << i % 8));
    write_file_bytes(path(), flipped);
    const Result<Content> content = read();
    if (content) {
      ++n_unnoticed;
      expect_equal(*content, head, state);
    } else {
      EXPECT_THAT(content.error().code, testing::AnyOf(Code::kCorrupt, Code::kUnsupported));
    }
  }
  EXPECT_LT(n_unnoticed, 8) << "zstd has a few bits without meaning, no more";
}

TEST_F(PrefixFiles, EveryOtherLengthIsNoticed) {
  const std::vector<std::byte> state = sample_state(4, 500);
  write(head_of({1, 2, 3}, state), state);
  const std::vector<char> whole = file_bytes(path());
  for (std::size_t n_bytes = 0; n_bytes <= whole.size() + 40; ++n_bytes) {
    std::vector<char> other = whole;
    other.resize(n_bytes);
    write_file_bytes(path(), other);
    const Result<Content> content = read();
    if (n_bytes == whole.size()) {
      EXPECT_TRUE(content);
    } else {
      ASSERT_FALSE(content) << n_bytes;
      EXPECT_EQ(content.error().code, Code::kCorrupt);
    }
  }
}

TEST_F(PrefixFiles, AnotherVersionIsNotRead) {
  const std::vector<std::byte> state = sample_state(5, 10);
  write(head_of({1}, state), state);
  std::vector<char> bytes = file_bytes(path());
  bytes[8] = 2;
  write_file_bytes(path(), bytes);
  const Result<Content> content = read();
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, Code::kUnsupported);
  EXPECT_EQ(content.error().message, "the file has version 2 of the format, not 1");
}

TEST_F(PrefixFiles, WhatIsBeyondTheLimitsIsNotRead) {
  const std::vector<std::byte> state = sample_state(6, 1000);
  write(head_of({1, 2, 3}, state), state);
  EXPECT_TRUE(read({.prefix_tokens_max = 3, .prefix_state_bytes_max = 1000}));
  EXPECT_EQ(read({.prefix_tokens_max = 2}).error().code, Code::kCorrupt);
  EXPECT_EQ(read({.prefix_state_bytes_max = 999}).error().code, Code::kCorrupt);
}

// A forged index: its frame is valid, its numbers are not.
class ForgedIndex : public PrefixFiles {
 protected:
  struct Fields {
    std::uint64_t state_bytes = 10;
    std::uint32_t n_tokens = 1;
    std::uint32_t n_blocks = 1;
    std::vector<std::uint32_t> rest = {7, 0};  // a token, the size of the block
  };

  Result<Content> read_with(const Fields& fields) {
    std::vector<std::byte> index(32 + 8);
    index.append_range(std::as_bytes(std::span(&fields.state_bytes, 1)));
    index.append_range(std::as_bytes(std::span(&fields.n_tokens, 1)));
    index.append_range(std::as_bytes(std::span(&fields.n_blocks, 1)));
    index.append_range(std::as_bytes(std::span(fields.rest)));
    FrameEncoder encoder(kPrefixFrameLevel);
    const std::vector<std::byte> block = sample_state(1, 10);
    const auto block_frame = encoder.encode(block).value();
    std::vector<std::byte> file = edge(1, "SLIP");
    file.append_range(block_frame);
    const auto index_frame = encoder.encode(index).value();
    file.append_range(index_frame);
    file.append_range(edge(static_cast<std::uint32_t>(index_frame.size()), "PILS"));
    write_file_bytes(path(), {reinterpret_cast<const char*>(file.data()),
                              reinterpret_cast<const char*>(file.data()) + file.size()});
    return read();
  }

  static std::vector<std::byte> edge(std::uint32_t number, const std::string& name) {
    const std::uint32_t numbers[] = {0x184D2A50, 8, number};
    std::vector<std::byte> bytes;
    bytes.append_range(std::as_bytes(std::span(numbers)));
    bytes.append_range(std::as_bytes(std::span(name)));
    return bytes;
  }

  static std::uint32_t block_frame_bytes() {
    FrameEncoder encoder(kPrefixFrameLevel);
    return static_cast<std::uint32_t>(encoder.encode(sample_state(1, 10))->size());
  }
};

TEST_F(ForgedIndex, IsReadOnlyWhereAllNumbersAgree) {
  const std::uint32_t block = block_frame_bytes();
  EXPECT_TRUE(read_with({.rest = {7, block}}));
  const std::vector<Fields> wrong = {
      {.rest = {7, block - 1}},
      {.rest = {7, block + 1}},
      {.rest = {7, ~0U}},
      {.rest = {7}},
      {.rest = {7, block, 0}},
      {.state_bytes = 0, .n_blocks = 0, .rest = {7}},
      {.n_blocks = 0, .rest = {7}},
      {.n_blocks = 2, .rest = {7, block, 0}},
      {.state_bytes = 9, .rest = {7, block}},
      {.state_bytes = 11, .rest = {7, block}},
      {.state_bytes = ~std::uint64_t{0}, .rest = {7, block}},
      {.state_bytes = ~std::uint64_t{0}, .n_blocks = ~0U, .rest = {7, block}},
      {.state_bytes = kMiB + 1, .n_blocks = 2, .rest = {7, block, 0}},
      {.state_bytes = kMiB + 1, .n_blocks = 2, .rest = {7, ~0U, block + 1}},  // the sum overflows
      {.n_tokens = 0, .rest = {block}},
      {.n_tokens = 2, .rest = {7, block}},
      {.n_tokens = 1U << 31U, .rest = {7, block}},
      {.n_tokens = 1U << 30U, .n_blocks = 1, .rest = {block}},
  };
  for (const Fields& fields : wrong) {
    const Result<Content> content = read_with(fields);
    ASSERT_FALSE(content);
    EXPECT_EQ(content.error().code, Code::kCorrupt) << content.error().message;
  }
}

// --- writing

TEST_F(PrefixFiles, AskForRoomBeforeEachPartAndEndWhereThereIsNone) {
  const std::vector<std::byte> state = sample_state(8, 2 * kMiB);
  const PrefixHead head = head_of({1}, state);
  const std::uint64_t n_bytes = write(head, state);
  const Result<UniqueFd> fd = open_file(path(), O_WRONLY | O_TRUNC);
  std::uint64_t n_asked = 0;
  const auto room = [&](std::uint64_t n_written, std::uint64_t n_more) -> Result<void> {
    EXPECT_EQ(n_written, n_asked);
    EXPECT_EQ(std::filesystem::file_size(path()), n_written);
    n_asked += n_more;
    return {};
  };
  ASSERT_TRUE(write_prefix_file(fd->get(), head, state, room));
  EXPECT_EQ(n_asked, n_bytes);
  const auto no_room = [&](std::uint64_t n_written, std::uint64_t n_more) -> Result<void> {
    if (n_written + n_more < kMiB) return {};
    return fail(Code::kOverloaded, "enough");
  };
  EXPECT_EQ(write_prefix_file(fd->get(), head, state, no_room).error().message, "enough");
}

TEST_F(PrefixFiles, AFullDiskIsAnError) {
  const Result<UniqueFd> full = open_file("/dev/full", O_WRONLY);
  ASSERT_TRUE(full);
  const std::vector<std::byte> state = sample_state(9, 10);
  const Result<std::uint64_t> written =
      write_prefix_file(full->get(), head_of({1}, state), state, always);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kIo);
}

}  // namespace
}  // namespace slipstream
