#include "server/http/target.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(Target, EscapesAreBytesAndWhatIsNoneStays) {
  EXPECT_EQ(without_percents("org%2Fmodel%3aQ8"), "org/model:Q8");
  EXPECT_EQ(without_percents("100%"), "100%");
  EXPECT_EQ(without_percents("%zz%4"), "%zz%4");
  EXPECT_EQ(without_percents("%2F"), "/");
}

TEST(Target, ValuesAreFoundByName) {
  EXPECT_EQ(query_value("/search?q=qwen3+4b", "q"), "qwen3 4b");
  EXPECT_EQ(query_value("/search?x=1&q=a%26b%2Bc&q=later", "q"), "a&b+c");
  EXPECT_EQ(query_value("/search?qq=1", "q"), "");
  EXPECT_EQ(query_value("/search?q", "q"), "");
  EXPECT_EQ(query_value("/search?q=&&", "q"), "");
  EXPECT_EQ(query_value("/search", "q"), "");
}

}  // namespace
}  // namespace slipstream
