#include "bench/speed/cell_run.h"

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

}  // namespace
}  // namespace slipstream::bench
