#include "engine/forecast/layer_deal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kOneGiB = std::uint64_t{1} << 30;

std::vector<int> deal(const std::vector<std::uint64_t>& layers,
                      const std::vector<LayerTaker>& machines) {
  const Result<std::vector<int>> dealt = deal_layers(layers, machines);
  EXPECT_TRUE(dealt) << dealt.error().message;
  return dealt.value_or(std::vector<int>());
}

TEST(LayerDeal, AllFillTheSameShareOfTheirMemory) {
  const std::vector<std::uint64_t> layers(28, kOneGiB);
  EXPECT_THAT(deal(layers, {{"a", 32 * kOneGiB}, {"b", 32 * kOneGiB}}), ElementsAre(14, 14));
  EXPECT_THAT(deal(layers, {{"a", 8 * kOneGiB}, {"b", 16 * kOneGiB}, {"c", 32 * kOneGiB}}),
              ElementsAre(4, 8, 16));
}

TEST(LayerDeal, CountsWhatIsNotLayers) {
  const std::vector<std::uint64_t> layers(10, kOneGiB);
  EXPECT_THAT(deal(layers, {{"a", 10 * kOneGiB}, {"b", 10 * kOneGiB, 4 * kOneGiB, true}}),
              ElementsAre(7, 3));
}

TEST(LayerDeal, LargeLayersCount) {
  EXPECT_THAT(deal({4 * kOneGiB, kOneGiB, kOneGiB, kOneGiB, kOneGiB},
                   {{"a", 8 * kOneGiB}, {"b", 8 * kOneGiB}}),
              ElementsAre(1, 4));
}

TEST(LayerDeal, WhoIsFullGetsNone) {
  EXPECT_THAT(
      deal(std::vector<std::uint64_t>(4, kOneGiB), {{"a", kOneGiB / 2}, {"b", 8 * kOneGiB}}),
      ElementsAre(0, 4));
}

TEST(LayerDeal, UsesTheLastByte) {
  EXPECT_THAT(
      deal(std::vector<std::uint64_t>(4, kOneGiB), {{"a", 2 * kOneGiB}, {"b", 2 * kOneGiB}}),
      ElementsAre(2, 2));
}

TEST(LayerDeal, RefusesWithTheNumbers) {
  const std::vector<std::uint64_t> layers(28, kOneGiB);
  const Result<std::vector<int>> dealt = deal_layers(
      layers, std::vector<LayerTaker>{{"10.0.0.2:50052", 8 * kOneGiB, kOneGiB},
                                      {"this machine", 16 * kOneGiB, 2 * kOneGiB, true}});
  ASSERT_FALSE(dealt);
  EXPECT_EQ(dealt.error().code, Code::kOutOfMemory);
  EXPECT_THAT(dealt.error().message, HasSubstr("28 layers take 28.0 GiB"));
  EXPECT_THAT(dealt.error().message, HasSubstr("7 of them find no room"));
  EXPECT_THAT(dealt.error().message, HasSubstr("10.0.0.2:50052 has 8.0 GiB, of which 1.0 GiB"));
  EXPECT_THAT(dealt.error().message, HasSubstr("room for 14"));
}

TEST(LayerDeal, RefusesIfWhatIsNeededDoesNotFit) {
  const std::vector<std::uint64_t> layers(2, kOneGiB);
  EXPECT_FALSE(deal_layers(
      layers,
      std::vector<LayerTaker>{{"a", 8 * kOneGiB}, {"this machine", kOneGiB, 2 * kOneGiB, true}}));
}

}  // namespace
}  // namespace slipstream
