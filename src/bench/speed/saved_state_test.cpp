#include "bench/speed/saved_state.h"

#include <gtest/gtest.h>

#include <cstring>

namespace slipstream::bench {
namespace {

std::vector<std::uint8_t> bytes_of(const std::vector<std::uint32_t>& words) {
  std::vector<std::uint8_t> bytes(words.size() * sizeof(std::uint32_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

TEST(StateStreams, AreAddedAndTakenAwayAtTheEnd) {
  std::vector<std::uint8_t> state = bytes_of({7, 8, 1, 42});
  set_streams(state, 3);
  EXPECT_EQ(state, bytes_of({7, 8, 3, 42, 0, 0}));
  set_streams(state, 1);
  EXPECT_EQ(state, bytes_of({7, 8, 1, 42}));
}

TEST(StateStreams, AStateThatIsTooShortStaysAsItIs) {
  for (const auto& words : std::vector<std::vector<std::uint32_t>>{
           {}, {7, 8}, {7, 8, 0, 42}, {7, 8, 100000, 42}, {7, 8, 3}, {7, 8, 8, 42, 0, 0}}) {
    std::vector<std::uint8_t> state = bytes_of(words);
    set_streams(state, 2);
    EXPECT_EQ(state, bytes_of(words));
  }
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
      return bytes_of(words);
    };
    std::vector<std::uint8_t> state = state_from(0);
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
    std::vector<std::uint8_t> state = bytes_of(words);
    EXPECT_FALSE(move_cells(state, 0, 2));
    EXPECT_EQ(state, bytes_of(words));
  }
}

}  // namespace
}  // namespace slipstream::bench
