#include "server/keys_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "server/api_keys.h"

namespace slipstream {
namespace {

class KeysFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  Result<std::vector<ClientKey>> read(const std::string& text, unsigned mode = 0600) {
    std::ofstream(path_) << text;
    ::chmod(path_.c_str(), mode);
    return read_keys_file(path_);
  }
  std::string refusal(const std::string& text, unsigned mode = 0600) {
    const auto keys = read(text, mode);
    return keys ? "taken" : keys.error().message;
  }

  const std::string path_ = testing::TempDir() + "keys-" + std::to_string(::getpid()) + ".json";
};

TEST_F(KeysFile, SaysWhoMayAskAndHowMuch) {
  const auto keys = read(R"({"keys": [
      {"name": "ann", "key": "first"},
      {"name": "batch", "key_sha256": "9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08",
       "priority": 3, "max_parallel_requests": 2, "tokens_per_minute": 60000}]})");
  ASSERT_TRUE(keys.has_value()) << keys.error().message;
  ASSERT_EQ(keys->size(), 2);
  EXPECT_EQ(keys->at(0).name, "ann");
  EXPECT_EQ(keys->at(0).digest, digest_of_key("first"));
  EXPECT_EQ(keys->at(0).priority, 1);
  EXPECT_EQ(keys->at(0).limits, ClientLimits{});
  EXPECT_EQ(keys->at(1).digest, digest_of_key("test"));
  EXPECT_EQ(keys->at(1).priority, 3);
  EXPECT_EQ(keys->at(1).limits,
            (ClientLimits{.n_requests_max = 2, .n_tokens_per_minute_max = 60000}));
}

TEST_F(KeysFile, WhatIsNotUnderstoodIsRefusedAndNoKeyIsShown) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({"keys": [{"name": "ann", "key": "sec)", "is no JSON"},
      {R"({"keys": []})", "one key or more"},
      {R"({})", "one key or more"},
      {R"([])", "must be an object"},
      {R"({"keys": [{"name": "ann", "key": "sec"}], "default": {}})", "nothing else"},
      {R"({"keys": ["sec"]})", "'keys[0]' must be an object"},
      {R"({"keys": [{"key": "sec"}]})", "'keys[0].name' must be a name"},
      {R"({"keys": [{"name": "ann ", "key": "sec"}]})", "'keys[0].name' must be a name"},
      {R"({"keys": [{"name": "ann"}]})", "'keys[0].key' or 'keys[0].key_sha256' is needed"},
      {R"({"keys": [{"name": "ann", "key": ""}]})", "'keys[0].key' is empty"},
      {R"({"keys": [{"name": "ann", "key_sha256": "sec"}]})", "64 hexadecimal digits"},
      {R"({"keys": [{"name": "ann", "key": "sec", "priority": 0}]})", "from 1 to 100"},
      {R"({"keys": [{"name": "ann", "key": "sec", "tpm": 5}]})", "'keys[0].tpm' is not known"},
      {R"({"keys": [{"name": "ann", "key": "sec"}, {"name": "ann", "key": "other"}]})",
       "two keys have the name 'ann'"},
      {R"({"keys": [{"name": "ann", "key": "sec"}, {"name": "bob", "key": "sec"}]})",
       "'keys[1]' has the same key"}};
  for (const auto& [text, why] : wrong) {
    const std::string message = refusal(text);
    EXPECT_TRUE(message.contains(why)) << text << "\n" << message;
    EXPECT_FALSE(message.contains("sec")) << message;
  }
}

TEST_F(KeysFile, NamesFoldersOfTheIndex) {
  const auto keys = read(R"({"keys": [
      {"name": "ann", "key": "first", "projects": ["/srv/ann/", "/srv/../srv/both"]},
      {"name": "bob", "key": "second", "projects": "/srv/both"}]})");
  ASSERT_TRUE(keys.has_value()) << keys.error().message;
  EXPECT_EQ(keys->at(0).projects, (std::vector<std::string>{"/srv/ann", "/srv/both"}));
  EXPECT_EQ(keys->at(1).projects, std::vector<std::string>{"/srv/both"});
  for (const std::string wrong : {R"(["notes"])", R"([""])"}) {
    EXPECT_TRUE(refusal(R"({"keys": [{"name": "ann", "key": "sec", "projects": )" + wrong + "}]}")
                    .contains("whole paths"));
  }
  EXPECT_TRUE(refusal(R"({"keys": [{"name": "ann", "key": "sec", "projects": [1]}]})")
                  .contains("an array of strings"));
}

TEST_F(KeysFile, OthersMayReadHashesOnly) {
  EXPECT_TRUE(refusal(R"({"keys": [{"name": "ann", "key": "sec"}]})", 0644).contains("chmod o-r"));
  EXPECT_EQ(refusal(R"({"keys": [{"name": "ann", "key": "sec"}]})", 0640), "taken");
  EXPECT_EQ(
      refusal(R"({"keys": [{"name": "ann", "key_sha256": ")" + std::string(64, 'a') + R"("}]})",
              0644),
      "taken");
}

TEST(ApiKeys, KnowsKeysOfBothKindsAndForgetsThoseThatAreGone) {
  Metrics metrics;
  ApiKeys keys({"plain"}, metrics);
  EXPECT_EQ(keys.check("Bearer plain", "")->name, "key 1");
  EXPECT_EQ(keys.check("", "").error().status, 401);
  const ClientKey ann{.name = "ann", .digest = digest_of_key("first"), .priority = 4};
  keys.set_file_keys({ann});
  const auto client = keys.check("Bearer first", "");
  ASSERT_TRUE(client.has_value());
  EXPECT_EQ(client->name, "ann");
  EXPECT_EQ(client->priority, 4);
  EXPECT_NE(client->salt, keys.check("Bearer plain", "")->salt);
  keys.set_file_keys({{.name = "bob", .digest = digest_of_key("second")}, ann});
  EXPECT_EQ(keys.check("Bearer first", "")->account, client->account)
      << "what it used stays counted";
  keys.set_file_keys({});
  EXPECT_EQ(keys.check("Bearer first", "").error().status, 401);
  EXPECT_TRUE(keys.check("Bearer plain", "").has_value());
}

TEST(ApiKeys, FoldersThatAKeyNamesAreNotForOthers) {
  Metrics metrics;
  ApiKeys keys({"plain"}, metrics);
  EXPECT_EQ(keys.check("Bearer plain", "")->rights, nullptr);
  keys.set_file_keys(
      {{.name = "ann", .digest = digest_of_key("first"), .projects = {"/a", "/x"}},
       {.name = "bob", .digest = digest_of_key("second"), .projects = {"/b", "/x"}}});
  const auto sees = [&keys](const std::string& key, std::string_view project) {
    return keys.check("Bearer " + key, "")->rights->show(project);
  };
  EXPECT_TRUE(sees("first", "/a") && sees("first", "/x") && sees("first", "/c"));
  EXPECT_FALSE(sees("first", "/b"));
  EXPECT_TRUE(sees("second", "/b") && sees("second", "/x"));
  EXPECT_FALSE(sees("second", "/a"));
  EXPECT_TRUE(sees("plain", "/c"));
  EXPECT_FALSE(sees("plain", "/a") || sees("plain", "/x"));
  keys.set_file_keys({{.name = "ann", .digest = digest_of_key("first")}});
  EXPECT_EQ(keys.check("Bearer plain", "")->rights, nullptr) << "no key names any now";
}

TEST(ApiKeys, WithoutAnyEverybodyMayAsk) {
  Metrics metrics;
  const ApiKeys keys({}, metrics);
  EXPECT_TRUE(keys.check("", "").has_value());
}

}  // namespace
}  // namespace slipstream
