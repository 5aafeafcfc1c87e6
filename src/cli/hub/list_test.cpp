#include "cli/hub/list.h"

#include <gtest/gtest.h>

namespace slipstream::list {
namespace {

TEST(List, ColumnsAreAlignedAndPartsCounted) {
  using std::chrono::sys_seconds;
  const sys_seconds now(std::chrono::days(100));
  const std::vector<hub::InstalledModel> models = {
      {.name = {.org = "a", .repo = "b", .quant = "Q8_0"},
       .commit = "",
       .files = {"/c/M-Q8_0.gguf"},
       .n_bytes = std::uint64_t{3} << 29,
       .last_used = now - std::chrono::hours(50)},
      {.name = {.org = "long", .repo = "name", .quant = "F16"},
       .commit = "",
       .files = {"/c/M-00001-of-00002.gguf", "/c/M-00002-of-00002.gguf"},
       .n_bytes = std::uint64_t{9} << 20,
       .last_used = now}};
  EXPECT_EQ(format_models(models, now, false),
            "NAME                SIZE  LAST USED       FILES\n"
            "a/b:Q8_0         1.5 GiB  2 days ago      M-Q8_0.gguf\n"
            "long/name:F16      9 MiB  just now        M-00001-of-00002.gguf and 1 more\n");
  EXPECT_NE(format_models(models, now, true).find("/c/M-Q8_0.gguf"), std::string::npos);
}

}  // namespace
}  // namespace slipstream::list
