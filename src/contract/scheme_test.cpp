#include "contract/scheme.h"

#include <gtest/gtest.h>

namespace slipstream::turbo {
namespace {

TEST(Scheme, NamesAndBits) {
  EXPECT_EQ(parse_scheme("turbo4").value().bits_of_layer(5), (Bits{4, 4}));
  EXPECT_EQ(parse_scheme("turbo8v4").value().bits_of_layer(0), (Bits{8, 4}));
  EXPECT_EQ(parse_scheme("turbo0v4").value().bits_of_layer(0), (Bits{0, 4}));
  EXPECT_EQ(parse_scheme("f16").value().bits_of_layer(0), (Bits{0, 0}));
}

TEST(Scheme, AnyTwoWidthsAreAScheme) {
  for (const int keys : {0, 2, 3, 4, 8}) {
    for (const int values : {0, 2, 3, 4, 8}) {
      const Result<Scheme> scheme =
          parse_scheme("turbo" + std::to_string(keys) + "v" + std::to_string(values));
      ASSERT_TRUE(scheme) << scheme.error().message;
      EXPECT_EQ(scheme->bits_of_layer(0), (Bits{keys, values}));
    }
  }
}

TEST(Scheme, LayersCanDiffer) {
  const Scheme scheme = parse_scheme("turbo4,0-1=turbo8,27=turbo8v4").value();
  EXPECT_EQ(scheme.bits_of_layer(0), (Bits{8, 8}));
  EXPECT_EQ(scheme.bits_of_layer(1), (Bits{8, 8}));
  EXPECT_EQ(scheme.bits_of_layer(2), (Bits{4, 4}));
  EXPECT_EQ(scheme.bits_of_layer(27), (Bits{8, 4}));
}

TEST(Scheme, AQueryMayReadALimitedNumberOfTokens) {
  EXPECT_EQ(parse_scheme("turbo4").value().attend(), 0);
  const Scheme scheme = parse_scheme("turbo4,attend=4096,0=turbo8").value();
  EXPECT_EQ(scheme.attend(), 4096);
  EXPECT_EQ(scheme.bits_of_layer(0), (Bits{8, 8}));
}

TEST(Scheme, WhatIsNotASchemeIsExplained) {
  for (const char* text : {"",
                           "turbo",
                           "turbo5",
                           "turbo4v",
                           "turbo4v5",
                           "turbov4",
                           "turbo44",
                           "turbo4v44",
                           "q8_0",
                           "turbo4,",
                           "turbo4,turbo8",
                           "turbo4,x=turbo8",
                           "turbo4,3-1=turbo8",
                           "turbo4,-1=turbo8",
                           "turbo4,1=nonsense",
                           "0=turbo4",
                           "turbo4,attend=",
                           "turbo4,attend=511",
                           "turbo4,attend=-1",
                           "turbo4,attend=4k",
                           "turbo4,attend=99999999999999999999",
                           "turbo0v4,attend=512",
                           "f16,attend=512"}) {
    const Result<Scheme> scheme = parse_scheme(text);
    ASSERT_FALSE(scheme) << text;
    EXPECT_EQ(scheme.error().code, Code::kInvalidArgument);
    EXPECT_FALSE(scheme.error().message.empty());
  }
  EXPECT_NE(parse_scheme("turbo5").error().message.find("turbo8v4"), std::string::npos);
}

}  // namespace
}  // namespace slipstream::turbo
