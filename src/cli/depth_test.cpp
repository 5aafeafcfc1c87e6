#include "cli/depth.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <vector>

namespace slipstream {
namespace {

TEST(Depth, IsANumberOfTokensOrOfThousands) {
  EXPECT_EQ(parse_depth("0"), 0);
  EXPECT_EQ(parse_depth("512"), 512);
  EXPECT_EQ(parse_depth("8k"), 8192);
  EXPECT_EQ(parse_depth("1.5K"), 1536);
  for (const char* text : {"", "k", "8m", "8kk", "-1", "nan", "99999999"}) {
    EXPECT_FALSE(parse_depth(text)) << text;
  }
}

TEST(Depth, OptionsTakeSeveralAndRefuseWhatIsTooSmall) {
  CLI::App app;
  std::vector<int> depths;
  CLI::Option* option = app.add_option("--depth", depths)->delimiter(',');
  take_depths(*option, 16);
  app.parse("--depth 512,4k,32k");
  EXPECT_EQ(depths, (std::vector{512, 4096, 32768}));
  EXPECT_THROW(app.parse("--depth 4k,8"), CLI::ValidationError);
  EXPECT_THROW(app.parse("--depth far"), CLI::ValidationError);
}

}  // namespace
}  // namespace slipstream
