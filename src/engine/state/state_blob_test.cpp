#include "engine/state/state_blob.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace slipstream {
namespace {

std::vector<std::byte> bytes_of(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(n);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

void fill(std::byte* at, std::span<const std::byte> bytes) {
  ASSERT_NE(at, nullptr);
  std::ranges::copy(bytes, at);
}

// A state of 1000 bytes: rows of 20 bytes at 100 (3, then 2 more) and of 16 bytes at 300 (4).
struct Example {
  std::vector<std::byte> state = bytes_of(1000, 1);
  std::vector<std::byte> first = bytes_of(25, 2);
  std::vector<std::byte> second = bytes_of(8, 3);
  std::vector<std::byte> centres = bytes_of(30, 4);

  [[nodiscard]] std::vector<std::byte> write() const {
    StateBlobWriter writer(state.size());
    fill(writer.add_centres(7, 0, centres.size()), centres);
    fill(writer.add_rows({.offset = 100, .n_rows = 3, .row_bytes = 20, .packed_row_bytes = 5}),
         std::span(first).first(15));
    EXPECT_EQ(writer.add_centres(7, 0, centres.size()), nullptr);
    fill(writer.add_rows({.offset = 160, .n_rows = 2, .row_bytes = 20, .packed_row_bytes = 5}),
         std::span(first).subspan(15));
    fill(writer.add_centres(7, 1, 10), bytes_of(10, 5));
    fill(writer.add_rows({.offset = 300, .n_rows = 4, .row_bytes = 16, .packed_row_bytes = 2}),
         second);
    return std::move(writer).finish(state);
  }
};

TEST(StateBlob, HoldsTheStateWithoutItsRows) {
  const Example example;
  const std::vector<std::byte> bytes = example.write();
  const Result<StateBlob> blob = StateBlob::parse(bytes);
  ASSERT_TRUE(blob.has_value()) << blob.error().message;
  EXPECT_EQ(blob->state_bytes(), 1000U);
  EXPECT_EQ(blob->packed_bytes(), 33U);
  EXPECT_EQ(blob->rest().size(), 1000U - 100 - 64);
  std::vector<std::byte> state(1000, std::byte{9});
  blob->spread(state);
  for (std::size_t i = 0; i < state.size(); ++i) {
    const bool is_in_gap = (i >= 100 && i < 200) || (i >= 300 && i < 364);
    ASSERT_EQ(state[i], is_in_gap ? std::byte{9} : example.state[i]) << i;
  }
}

TEST(StateBlob, GivesRowsInOtherPiecesAndNothingElse) {
  const Example example;
  const std::vector<std::byte> bytes = example.write();
  const Result<StateBlob> blob = StateBlob::parse(bytes);
  ASSERT_TRUE(blob.has_value());
  const auto rows = [&](std::uint64_t offset, std::uint64_t n, std::uint32_t row_bytes = 20,
                        std::uint32_t packed = 5) {
    return blob->rows(
        {.offset = offset, .n_rows = n, .row_bytes = row_bytes, .packed_row_bytes = packed});
  };
  ASSERT_NE(rows(100, 5), nullptr);  // saved as 3 and 2
  EXPECT_TRUE(std::ranges::equal(std::span(rows(100, 5), 25), example.first));
  EXPECT_EQ(rows(180, 1), rows(100, 5) + 20);
  ASSERT_NE(rows(300, 4, 16, 2), nullptr);
  EXPECT_TRUE(std::ranges::equal(std::span(rows(300, 4, 16, 2), 8), example.second));
  EXPECT_EQ(rows(0, 1), nullptr);
  EXPECT_EQ(rows(100, 6), nullptr);
  EXPECT_EQ(rows(110, 1), nullptr);
  EXPECT_EQ(rows(200, 1), nullptr);
  EXPECT_EQ(rows(220, 1), nullptr);
  EXPECT_EQ(rows(100, 1, 20, 4), nullptr);
  EXPECT_EQ(rows(100, 1, 16, 5), nullptr);
  EXPECT_EQ(rows(100, ~0ULL), nullptr);
  EXPECT_EQ(rows(~0ULL, 1), nullptr);

  ASSERT_NE(blob->centres(7, 0, 30), nullptr);
  EXPECT_TRUE(std::ranges::equal(std::span(blob->centres(7, 0, 30), 30), example.centres));
  EXPECT_EQ(blob->centres(7, 0, 10), nullptr);
  EXPECT_EQ(blob->centres(7, 2, 10), nullptr);
  EXPECT_EQ(blob->centres(8, 0, 30), nullptr);
}

TEST(StateBlob, WithoutRowsIsTheState) {
  const std::vector<std::byte> state = bytes_of(77, 6);
  const std::vector<std::byte> bytes = StateBlobWriter(state.size()).finish(state);
  EXPECT_EQ(bytes.size(), state.size() + 40);
  const Result<StateBlob> blob = StateBlob::parse(bytes);
  ASSERT_TRUE(blob.has_value());
  EXPECT_EQ(blob->packed_bytes(), 0U);
  EXPECT_TRUE(std::ranges::equal(blob->rest(), state));
  std::vector<std::byte> plain = plain_state_blob(state.size());
  std::ranges::copy(state, plain.end() - static_cast<std::ptrdiff_t>(state.size()));
  EXPECT_EQ(plain, bytes);
}

TEST(StateBlob, RowsOutOfOrderOrOutsideHaveNoPlace) {
  StateBlobWriter writer(1000);
  ASSERT_NE(writer.add_rows({.offset = 500, .n_rows = 2, .row_bytes = 20, .packed_row_bytes = 5}),
            nullptr);
  for (const std::uint64_t offset : {0U, 480U, 500U, 530U, 990U}) {
    EXPECT_EQ(
        writer.add_rows({.offset = offset, .n_rows = 1, .row_bytes = 20, .packed_row_bytes = 5}),
        nullptr)
        << offset;
  }
}

// Cuts everywhere and changes every byte of the tables: parse() refuses the blob, or what it
// accepts stays within its bytes.
TEST(StateBlob, DamageIsRefusedOrHarmless) {
  const std::vector<std::byte> bytes = Example().write();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_FALSE(StateBlob::parse(cut).has_value()) << n;
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(StateBlob::parse(longer).has_value());

  std::size_t n_refused = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const unsigned flip : {1U, 0x80U, 0xffU}) {
      std::vector<std::byte> damaged = bytes;
      damaged[i] ^= static_cast<std::byte>(flip);
      const Result<StateBlob> blob = StateBlob::parse(damaged);
      if (!blob) {
        EXPECT_EQ(blob.error().code, Code::kCorrupt);
        ++n_refused;
        continue;
      }
      ASSERT_LE(blob->state_bytes(), bytes.size() * 15);
      std::vector<std::byte> state(blob->state_bytes());
      blob->spread(state);
      const std::byte* rows =
          blob->rows({.offset = 100, .n_rows = 5, .row_bytes = 20, .packed_row_bytes = 5});
      EXPECT_TRUE(rows == nullptr || rows + 25 <= damaged.data() + damaged.size());
    }
  }
  EXPECT_GT(n_refused, 100U);
}

// Numbers whose products or sums would overflow.
TEST(StateBlob, HugeNumbersAreRefused) {
  const std::vector<std::byte> bytes = Example().write();
  const std::size_t first_gap = bytes.size() - (16 + 30) - (16 + 10) - 2 * 24;
  for (std::size_t at : {8U, 12U, 16U, 24U, 32U}) {  // the header's counts and sizes
    for (const std::uint32_t wrong : {~0U, 1U << 31U}) {
      std::vector<std::byte> damaged = bytes;
      std::memcpy(damaged.data() + at, &wrong, sizeof(wrong));
      if (at >= 16) std::memcpy(damaged.data() + at + 4, &wrong, sizeof(wrong));
      EXPECT_FALSE(StateBlob::parse(damaged).has_value()) << at;
    }
  }
  for (std::size_t field = 0; field < 24; field += 4) {
    for (const std::uint32_t wrong : {0U, ~0U, 1U << 31U}) {
      if (field == 0 && wrong == 0) continue;  // a gap may begin the state
      std::vector<std::byte> damaged = bytes;
      std::memcpy(damaged.data() + first_gap + field, &wrong, sizeof(wrong));
      EXPECT_EQ(StateBlob::parse(damaged).has_value(), damaged == bytes) << field;
    }
  }
}

}  // namespace
}  // namespace slipstream
