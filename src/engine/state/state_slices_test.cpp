#include "engine/state/state_slices.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace slipstream {
namespace {

std::vector<std::byte> two_slices() {
  std::vector<std::byte> bytes;
  append_slice(bytes, 3, std::vector(5, std::byte{1}));
  append_slice(bytes, 2, std::vector(7, std::byte{2}));
  return bytes;
}

TEST(StateSlices, ComeBackWithTheirTokens) {
  const std::vector<std::byte> bytes = two_slices();
  const auto slices = parse_slices(bytes, 5);
  ASSERT_TRUE(slices.has_value());
  ASSERT_EQ(slices->size(), 2U);
  EXPECT_EQ((*slices)[1].first, 3);
  EXPECT_EQ((*slices)[1].end, 5);
  EXPECT_TRUE(std::ranges::equal((*slices)[1].state, std::vector(7, std::byte{2})));
}

TEST(StateSlices, CutAnywhereOrOfAnotherNumberOfTokensAreCorrupt) {
  const std::vector<std::byte> bytes = two_slices();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(parse_slices(std::span(bytes).first(n), 5).has_value()) << n;
  }
  for (const int n_tokens : {0, 1, 3, 4, 6}) {
    EXPECT_FALSE(parse_slices(bytes, n_tokens).has_value()) << n_tokens;
  }
}

TEST(StateSlices, LengthsPastTheEndAreCorrupt) {
  for (const std::size_t at : {0U, 8U}) {
    std::vector<std::byte> bytes = two_slices();
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 8, std::byte{0xff});
    EXPECT_FALSE(parse_slices(bytes, 5).has_value()) << at;
  }
}

}  // namespace
}  // namespace slipstream
