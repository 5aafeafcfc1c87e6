#include "hub/settings.h"

#include <gtest/gtest.h>

#include <map>

#include "hub/test_cache.h"

namespace slipstream::hub {
namespace {

Result<Settings> settings_with(const std::map<std::string, std::string>& variables) {
  return read_settings([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(HubSettings, TheCacheIsWhereHuggingfaceHubHasIt) {
  EXPECT_EQ(settings_with({{"HOME", "/h"}})->cache, "/h/.cache/huggingface/hub");
  EXPECT_EQ(settings_with({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}})->cache, "/x/huggingface/hub");
  EXPECT_EQ(settings_with({{"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "/f"}})->cache, "/f/hub");
  EXPECT_EQ(settings_with({{"HF_HOME", "/f"}, {"HF_HUB_CACHE", "/c"}})->cache, "/c");
  EXPECT_EQ(settings_with({{"HF_HOME", "/f"}, {"HF_HUB_CACHE", ""}})->cache, "/f/hub");
}

TEST(HubSettings, TheEndpointHasNoSlashAtItsEnd) {
  EXPECT_EQ(settings_with({})->endpoint, "https://huggingface.co");
  EXPECT_EQ(settings_with({{"HF_ENDPOINT", "http://hub:1/"}})->endpoint, "http://hub:1");
  EXPECT_EQ(settings_with({{"HF_ENDPOINT", "file:///etc"}}).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(settings_with({{"HF_HUB_OFFLINE", "true"}})->is_offline);
  EXPECT_FALSE(settings_with({{"HF_HUB_OFFLINE", "0"}})->is_offline);
}

TEST(HubSettings, TheTokenIsTheVariablesOrTheFiles) {
  const TestCache home;
  EXPECT_EQ(settings_with({{"HF_HOME", home.path()}})->token, "");
  TestCache::write(home.path() / "token", "hf_file\n");
  EXPECT_EQ(settings_with({{"HF_HOME", home.path()}})->token, "hf_file");
  EXPECT_EQ(settings_with({{"HF_HOME", home.path()}, {"HF_TOKEN", "hf_mine"}})->token, "hf_mine");
  EXPECT_EQ(settings_with({{"HF_TOKEN_PATH", home.path() / "token"}})->token, "hf_file");
  // The token becomes part of a header, and is not shown.
  const Result<Settings> injected = settings_with({{"HF_TOKEN", "hf_a\r\nX: y"}});
  ASSERT_FALSE(injected);
  EXPECT_EQ(injected.error().message.find("hf_a"), std::string::npos);
}

}  // namespace
}  // namespace slipstream::hub
