#include "bench/speed/saved_state.h"

#include <gtest/gtest.h>

#include <cstring>

#include "engine/state/state_blob.h"

namespace slipstream::bench {
namespace {

// Of libllama's state without packed rows.
std::vector<std::byte> blob_of(const std::vector<std::uint32_t>& words) {
  std::vector<std::byte> blob = plain_state_blob(words.size() * sizeof(std::uint32_t));
  const std::span<std::byte> rest = state_rest(blob);
  std::memcpy(rest.data(), words.data(), rest.size());
  return blob;
}

// Between the words are two packed rows of four bytes, for a word each.
std::vector<std::byte> packed_blob_of(std::span<const std::uint32_t> before,
                                      std::span<const std::uint32_t> behind) {
  std::vector<std::uint32_t> words(before.begin(), before.end());
  words.insert(words.end(), 2, 77);
  words.insert(words.end(), behind.begin(), behind.end());
  const std::span<const std::byte> state = std::as_bytes(std::span(words));
  StateBlobWriter writer(state.size());
  const StateGap gap{
      .offset = before.size_bytes(), .n_rows = 2, .row_bytes = 4, .packed_row_bytes = 4};
  std::memset(writer.add_rows(gap), 1, gap.packed_bytes());
  std::memset(writer.add_centres(0, 0, 3), 2, 3);
  return std::move(writer).finish(state);
}

TEST(StateStreams, AreAddedAndTakenAwayAtTheEnd) {
  std::vector<std::byte> state = blob_of({7, 8, 1, 42});
  set_streams(state, 3);
  EXPECT_EQ(state, blob_of({7, 8, 3, 42, 0, 0}));
  set_streams(state, 1);
  EXPECT_EQ(state, blob_of({7, 8, 1, 42}));
}

TEST(StateStreams, AreAddedBehindPackedRows) {
  constexpr std::uint32_t kOne[] = {7, 8, 1, 42};
  constexpr std::uint32_t kThree[] = {7, 8, 3, 42};
  constexpr std::uint32_t kBehind[] = {9, 0, 0};
  const std::vector<std::byte> one = packed_blob_of(kOne, std::span(kBehind).first(1));
  const std::vector<std::byte> three = packed_blob_of(kThree, kBehind);
  std::vector<std::byte> state = one;
  set_streams(state, 3);
  EXPECT_EQ(state, three);
  set_streams(state, 1);
  EXPECT_EQ(state, one);
}

TEST(StateStreams, AStateThatIsTooShortStaysAsItIs) {
  for (const auto& words : std::vector<std::vector<std::uint32_t>>{
           {}, {7, 8}, {7, 8, 0, 42}, {7, 8, 100000, 42}, {7, 8, 3}, {7, 8, 8, 42, 0, 0}}) {
    std::vector<std::byte> state = blob_of(words);
    set_streams(state, 2);
    EXPECT_EQ(state, blob_of(words));
  }
  std::vector<std::byte> nothing;
  set_streams(nothing, 2);
  EXPECT_FALSE(move_cells(nothing, 0, 2));
}

TEST(StateCells, AreMovedWhateverFollowsAPosition) {
  for (const std::size_t n_behind : {1U, 2U, 5U}) {
    const auto state_from = [n_behind](std::uint32_t first) {
      std::vector<std::uint32_t> words = {7, 8, 1, 3};
      for (std::uint32_t i = 0; i < 3; ++i) {
        words.push_back(first + i);
        words.insert(words.end(), n_behind, 1);
      }
      words.insert(words.end(), {9, 9, 9, 9, 9, 9, 9, 9});  // rows
      return blob_of(words);
    };
    std::vector<std::byte> state = state_from(0);
    EXPECT_TRUE(move_cells(state, 0, 16));
    EXPECT_EQ(state, state_from(16));
    EXPECT_TRUE(move_cells(state, 16, 5));
    EXPECT_EQ(state, state_from(5));
  }
}

TEST(StateCells, OthersStayAsTheyAre) {
  for (const auto& words :
       std::vector<std::vector<std::uint32_t>>{{},
                                               {7, 8, 1},
                                               {7, 8, 1, 3},
                                               {7, 8, 1, 1, 0, 1},
                                               {7, 8, 1, 4'000'000'000, 0, 1, 1, 1},
                                               {7, 8, 1, 3, 0, 1, 2, 1, 1, 1, 9, 9, 9, 9}}) {
    std::vector<std::byte> state = blob_of(words);
    EXPECT_FALSE(move_cells(state, 0, 2));
    EXPECT_EQ(state, blob_of(words));
  }
}

}  // namespace
}  // namespace slipstream::bench
