#include "engine/vision/image_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace slipstream {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

ImageKey key_of(std::string_view projector, std::string_view file) {
  return image_key(bytes_of(projector), bytes_of(file));
}

TEST(ImageKey, DependsOnTheFileAndOnTheProjector) {
  EXPECT_EQ(key_of("p", "a"), key_of("p", "a"));
  EXPECT_NE(key_of("p", "a"), key_of("p", "b"));
  EXPECT_NE(key_of("p", "a"), key_of("q", "a"));
  EXPECT_NE(key_of("pa", ""), key_of("p", "a"));
  EXPECT_NE(part_key(key_of("p", "a"), 0), part_key(key_of("p", "a"), 1));
}

TEST(ImageKey, NoVocabularyHasItsCells) {
  for (const int n : {kImageCellsMin, 16, 576}) {
    const std::vector<Token> cells = cell_tokens(key_of("p", "a"), n);
    EXPECT_EQ(cells.size(), static_cast<std::size_t>(n));
    EXPECT_TRUE(std::ranges::all_of(cells, is_image_cell));
  }
  EXPECT_FALSE(is_image_cell(0));
}

TEST(ImageKey, CellsOfOtherImagesAreOthers) {
  std::set<std::vector<Token>> all;
  for (int i = 0; i < 1000; ++i) {
    all.insert(cell_tokens(key_of("p", std::to_string(i)), kImageCellsMin));
  }
  EXPECT_EQ(all.size(), 1000U);
  // The hash is in each of the first eight cells.
  const std::vector<Token> cells = cell_tokens(key_of("p", "a"), 16);
  EXPECT_EQ(std::set<Token>(cells.begin(), cells.end()).size(), 8U);
}

}  // namespace
}  // namespace slipstream
