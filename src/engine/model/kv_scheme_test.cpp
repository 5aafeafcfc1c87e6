#include "engine/model/kv_scheme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slipstream {
namespace {

using testing::HasSubstr;

KvScheme scheme(std::string_view name) {
  const Result<KvScheme> parsed = parse_kv_scheme(name);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed.value_or(KvScheme{});
}

TEST(KvScheme, KnowsStockTypes) {
  EXPECT_EQ(scheme("q8_0").key_type(), GGML_TYPE_Q8_0);
  EXPECT_EQ(scheme("q8_0").value_type(), GGML_TYPE_Q8_0);
  EXPECT_EQ(scheme("q8_0/q4_0").value_type(), GGML_TYPE_Q4_0);
  EXPECT_EQ(scheme("q8_0/q4_0").name(), "q8_0/q4_0");
  EXPECT_FALSE(scheme("q8_0").is_turbo());
  EXPECT_EQ(KvScheme{}.name(), "f16");
}

TEST(KvScheme, KnowsThePluginsNames) {
  EXPECT_EQ(scheme("turbo8v4").bits_of_layer(0), (turbo::Bits{8, 4}));
  EXPECT_EQ(scheme("turbo3").bits_of_layer(7), (turbo::Bits{3, 3}));
  EXPECT_EQ(scheme("turbo0v4").bits_of_layer(0), (turbo::Bits{0, 4}));
  EXPECT_TRUE(scheme("turbo4").is_turbo());
  EXPECT_EQ(scheme("turbo4").key_type(), GGML_TYPE_F16);
  EXPECT_EQ(scheme("turbo4").name(), "turbo4");
}

TEST(KvScheme, AnyTwoWidthsAreAScheme) {
  for (const int keys : {0, 2, 3, 4, 8}) {
    for (const int values : {0, 2, 3, 4, 8}) {
      const std::string name = "turbo" + std::to_string(keys) + "v" + std::to_string(values);
      EXPECT_EQ(scheme(name).bits_of_layer(0), (turbo::Bits{keys, values})) << name;
    }
  }
}

TEST(KvScheme, SingleLayersMayDiffer) {
  const KvScheme mixed = scheme("turbo4,0-1=turbo8,27=f16");
  EXPECT_EQ(mixed.bits_of_layer(0), (turbo::Bits{8, 8}));
  EXPECT_EQ(mixed.bits_of_layer(2), (turbo::Bits{4, 4}));
  EXPECT_EQ(mixed.bits_of_layer(27), (turbo::Bits{0, 0}));
}

TEST(KvScheme, RefusesOthersAndNamesTheChoices) {
  for (const std::string_view name :
       {"", "f8", "turbo", "turbo5", "turbo4v9", "turbo4v", "turbov4", "turbo44", "q8_0/", "/q8_0",
        "q8_0/turbo4", "turbo4,", "turbo4,turbo8", "turbo4,3-1=turbo8", "turbo4,x=turbo8",
        "turbo4,0=q8_0", "q4_K"}) {
    const Result<KvScheme> parsed = parse_kv_scheme(name);
    ASSERT_FALSE(parsed) << name;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument) << name;
  }
  const std::string message = parse_kv_scheme("turbo5").error().message;
  for (const std::string_view name : {"'turbo5'", "turbo8v4", "turbo3", "f16", "q8_0", "q4_0"}) {
    EXPECT_THAT(message, HasSubstr(name));
  }
}

TEST(KvScheme, EveryNameItOffersCanBeParsed) {
  for (const std::string_view name : kv_scheme_names()) EXPECT_EQ(scheme(name).name(), name);
}

TEST(KvScheme, CountsBitsWithTheirScales) {
  EXPECT_EQ(scheme("f16").bits_per_element(), 16);
  EXPECT_EQ(scheme("q8_0").bits_per_element(), 8.5);
  EXPECT_EQ(scheme("q8_0/q4_0").bits_per_element(), 6.5);
  // docs/formats/kv-tile.md: 1.91, 3.88 and 5.12 times smaller than f16
  EXPECT_NEAR(16 / scheme("turbo8").bits_per_element(), 1.91, 0.005);
  EXPECT_NEAR(16 / scheme("turbo4").bits_per_element(), 3.88, 0.005);
  EXPECT_NEAR(16 / scheme("turbo3").bits_per_element(), 5.12, 0.005);
  EXPECT_EQ(scheme("turbo4").bits_per_element(64), 4.25);
  EXPECT_EQ(scheme("turbo4").bits_per_element(72), 16) << "no multiple of 16: not compressed";
}

}  // namespace
}  // namespace slipstream
