#include "cli/scheme_list.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(SchemeList, WhatHasAnEqualsSignBelongsToTheSchemeBeforeIt) {
  using List = std::vector<std::string>;
  EXPECT_EQ(join_schemes(List{"q4_0", "turbo4"}), (List{"q4_0", "turbo4"}));
  EXPECT_EQ(join_schemes(List{"q4_0", "turbo4", "0-1=turbo8", "attend=4096", "f16"}),
            (List{"q4_0", "turbo4,0-1=turbo8,attend=4096", "f16"}));
  EXPECT_EQ(join_schemes(List{"0-1=turbo8", ""}), (List{"0-1=turbo8"}));  // is refused later
}

}  // namespace
}  // namespace slipstream
