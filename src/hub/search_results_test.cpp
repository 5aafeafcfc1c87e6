#include "hub/search_results.h"

#include <gmock/gmock.h>

namespace slipstream::hub {
namespace {

TEST(SearchResults, HaveNameAndDownloads) {
  const auto results = parse_search_results(
      R"([{"id": "org/one-GGUF", "downloads": 12, "tags": ["gguf"]}, {"id": "org/two"}])");
  ASSERT_TRUE(results.has_value());
  ASSERT_EQ(results->size(), 2U);
  EXPECT_EQ((*results)[0].name.repo_id(), "org/one-GGUF");
  EXPECT_EQ((*results)[0].n_downloads, 12U);
  EXPECT_EQ((*results)[1].n_downloads, 0U);
}

// Each name would become part of an address, and perhaps of a path.
TEST(SearchResults, LeaveOutWhatIsNoName) {
  const auto results = parse_search_results(
      R"([{"id": "../etc"}, {"id": "gpt2"}, {"id": 7}, 7, {"id": "org/x:Q8_0"}, {"id": "a/b"},
          {"id": "a/c", "downloads": -4}])");
  ASSERT_TRUE(results.has_value());
  ASSERT_EQ(results->size(), 2U);
  EXPECT_EQ((*results)[0].name.repo_id(), "a/b");
  EXPECT_EQ((*results)[1].n_downloads, 0U);
}

TEST(SearchResults, WantAList) {
  for (const char* text : {"", "{}", "<html>", R"({"error": "x"})"}) {
    EXPECT_EQ(parse_search_results(text).error().code, Code::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace slipstream::hub
