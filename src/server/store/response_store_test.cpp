// Tests that responses are stored and hidden from other clients, and that the oldest are removed.
#include "server/store/response_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/format.h"
#include "server/store/input_items.h"
#include "server/store/response_document.h"
#include "server/store/response_id.h"
#include "server/store/stored_past.h"

namespace slipstream {
namespace {

constexpr Salt kMine = 7;
constexpr Salt kTheirs = 8;

std::string id_of(int number) { return format_text("resp_{:032x}", number); }

class ResponseStoreTest : public testing::Test {
 protected:
  ResponseStoreTest() {
    std::string pattern = testing::TempDir() + "slipstream-responses-XXXXXX";
    folder_ = std::string(::mkdtemp(pattern.data())) + "/responses";
  }
  ~ResponseStoreTest() override {
    std::filesystem::remove_all(std::filesystem::path(folder_).parent_path());
  }

  // Opens a store in the folder or in memory.
  std::unique_ptr<ResponseStore> open(std::uint64_t bytes_max = 1 << 20, std::size_t n_max = 100,
                                      bool is_in_memory = false) {
    auto store = ResponseStore::open(
        {.folder = is_in_memory ? "" : folder_, .bytes_max = bytes_max, .n_max = n_max});
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
  [[nodiscard]] std::string path_of(int number) const { return folder_ + "/" + id_of(number); }
  [[nodiscard]] std::uint64_t bytes_on_disk() const {
    std::uint64_t n = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) n += file.file_size();
    return n;
  }

  std::string folder_;
};

bool has(ResponseStore& store, int number, Salt salt = kMine) {
  return store.get(id_of(number), salt).has_value();
}

TEST_F(ResponseStoreTest, GivesBackWhatWasPut) {
  for (const bool is_in_memory : {false, true}) {
    const auto store = open(1 << 20, 100, is_in_memory);
    ASSERT_TRUE(store->put(id_of(1), kMine, {.response = "{\"a\":1}\n", .items = "[\"\\u0000\"]"}));
    const auto stored = store->get(id_of(1), kMine);
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->response, "{\"a\":1}\n");
    EXPECT_EQ(stored->items, "[\"\\u0000\"]");
    EXPECT_EQ(store->get(id_of(2), kMine).error().code, Code::kNotFound);
    EXPECT_TRUE(store->remove(id_of(1), kMine));
    EXPECT_FALSE(has(*store, 1));
    EXPECT_EQ(store->remove(id_of(1), kMine).error().code, Code::kNotFound);
  }
  EXPECT_EQ(bytes_on_disk(), 0);
}

TEST_F(ResponseStoreTest, SurvivesARestart) {
  ASSERT_TRUE(open()->put(id_of(1), kMine, {.response = "{}", .items = "[]"}));
  const auto store = open();
  EXPECT_TRUE(has(*store, 1));
  EXPECT_FALSE(has(*store, 1, kTheirs));
}

TEST_F(ResponseStoreTest, OthersSeeNothing) {
  for (const bool is_in_memory : {false, true}) {
    const auto store = open(1 << 20, 100, is_in_memory);
    ASSERT_TRUE(store->put(id_of(1), kMine, {.response = "{}", .items = "[]"}));
    EXPECT_FALSE(has(*store, 1, kTheirs));
    EXPECT_FALSE(store->remove(id_of(1), kTheirs));
    EXPECT_TRUE(has(*store, 1));
  }
  struct stat status{};
  ASSERT_EQ(::stat(path_of(1).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(folder_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_F(ResponseStoreTest, TheOldestGoesFirst) {
  const std::string text(300, 'x');
  for (const bool is_in_memory : {true, false}) {
    const auto store = open(1000, 100, is_in_memory);
    for (int i = 9; i > 0; --i) {
      ASSERT_TRUE(store->put(id_of(i), kMine, {.response = text, .items = ""}));
      if (!is_in_memory) {
        EXPECT_LE(bytes_on_disk(), 1000);
      }
    }
    EXPECT_TRUE(has(*store, 1));
    EXPECT_TRUE(has(*store, 2));
    EXPECT_FALSE(has(*store, 3));
    const auto too_large =
        store->put(id_of(20), kMine, {.response = std::string(1000, 'x'), .items = ""});
    EXPECT_EQ(too_large.error().code, Code::kUnsupported);
    EXPECT_TRUE(has(*store, 2)) << "nothing had to go for it";
  }
  EXPECT_FALSE(has(*open(500), 2)) << "a smaller one is obeyed at the start";
  EXPECT_TRUE(has(*open(), 1));
}

TEST_F(ResponseStoreTest, KeepsSoManyAtMost) {
  const auto store = open(1 << 20, 2);
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(store->put(id_of(i), kMine, {.response = "{}", .items = "[]"}));
  }
  EXPECT_FALSE(has(*store, 1));
  EXPECT_TRUE(has(*store, 2));
  EXPECT_TRUE(has(*store, 3));
}

TEST_F(ResponseStoreTest, DamagedFilesAreNotThere) {
  {
    const auto store = open();
    for (int i = 1; i <= 3; ++i) {
      ASSERT_TRUE(store->put(id_of(i), kMine, {.response = "{}", .items = "[1, 2, 3]"}));
    }
  }
  std::filesystem::resize_file(path_of(1), std::filesystem::file_size(path_of(1)) - 1);
  std::ofstream(path_of(2)) << "something else";
  std::ofstream(path_of(4)) << "";
  std::ofstream(path_of(5) + ".partial") << "of a writer that died";
  std::ofstream(folder_ + "/notes.txt") << "mine";
  const auto store = open();
  EXPECT_FALSE(has(*store, 1));
  EXPECT_FALSE(has(*store, 2));
  EXPECT_TRUE(has(*store, 3));
  EXPECT_FALSE(has(*store, 4));
  for (const int gone : {1, 2, 4}) EXPECT_FALSE(std::filesystem::exists(path_of(gone)));
  EXPECT_FALSE(std::filesystem::exists(path_of(5) + ".partial"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/notes.txt"));
  // A file is damaged while the store is open.
  std::filesystem::resize_file(path_of(3), 10);
  EXPECT_FALSE(has(*store, 3));
  EXPECT_TRUE(store->put(id_of(6), kMine, {.response = "{}", .items = "[]"}));
}

// A directory in its place cannot be read.
TEST_F(ResponseStoreTest, WhatCannotBeReadNowIsKept) {
  const auto store = open();
  ASSERT_TRUE(store->put(id_of(1), kMine, {.response = "{}", .items = "[]"}));
  std::filesystem::rename(path_of(1), folder_ + "/aside");
  std::filesystem::create_directory(path_of(1));
  EXPECT_NE(store->get(id_of(1), kMine).error().code, Code::kNotFound);
  std::filesystem::remove(path_of(1));
  std::filesystem::rename(folder_ + "/aside", path_of(1));
  EXPECT_TRUE(has(*store, 1));
}

TEST_F(ResponseStoreTest, AnIdIsNeverAPath) {
  const auto store = open();
  std::ofstream(folder_ + "/../secret") << to_document(kMine, 1, {.response = "{}", .items = "[]"});
  for (const char* id :
       {"../secret", "resp_../secret", "", "resp_", "resp_0",
        "resp_0000000000000000000000000000000G", "resp_00000000000000000000000000000001/"}) {
    EXPECT_FALSE(is_response_id(id)) << id;
    EXPECT_EQ(store->get(id, kMine).error().code, Code::kNotFound) << id;
    EXPECT_EQ(store->remove(id, kMine).error().code, Code::kNotFound) << id;
  }
  EXPECT_TRUE(is_response_id(new_response_id()));
  // A symbolic link is not followed, either.
  std::filesystem::create_symlink(folder_ + "/../secret", path_of(9));
  EXPECT_FALSE(has(*store, 9));
}

TEST_F(ResponseStoreTest, BelongsToOneProcess) {
  const auto store = open();
  const auto other = ResponseStore::open({.folder = folder_});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kOverloaded);
}

TEST_F(ResponseStoreTest, TheDisksFailureCostsTheResponseOnly) {
  const auto store = open();
  std::filesystem::remove_all(folder_);
  EXPECT_FALSE(store->put(id_of(1), kMine, {.response = "{}", .items = "[]"}));
  EXPECT_FALSE(has(*store, 1));
}

std::string response_with(const std::string& id, const std::string& output) {
  return R"({"id":")" + id + R"(","output":)" + output + "}";
}

TEST_F(ResponseStoreTest, AConversationHasItsAnswer) {
  const auto store = open();
  const std::string item = item_id("msg", {.response_id = id_of(1), .idx = 1});
  const std::string output = R"([{"id":"x"},{"id":")" + item + R"("}])";
  ASSERT_TRUE(store->put(id_of(1), kMine,
                         {.response = response_with(id_of(1), output), .items = R"([{"a":1}])"}));
  StoredPast mine(*store, kMine);
  EXPECT_EQ(dump(mine.conversation(id_of(1))), R"([{"a":1},{"id":"x"},{"id":")" + item + R"("}])");
  EXPECT_EQ(dump(mine.item(item)), R"({"id":")" + item + R"("})");
  EXPECT_TRUE(mine.item(item_id("fc", {.response_id = id_of(1), .idx = 1})).is_null());
  EXPECT_TRUE(mine.item(item_id("msg", {.response_id = id_of(1), .idx = 7})).is_null());
  EXPECT_TRUE(mine.item("msg_1").is_null());
  EXPECT_TRUE(mine.conversation("resp_1").is_null());
  StoredPast theirs(*store, kTheirs);
  EXPECT_TRUE(theirs.conversation(id_of(1)).is_null());
  EXPECT_TRUE(theirs.item(item).is_null());
}

TEST(InputItems, ArePagesInEitherOrder) {
  const StoredResponse stored{.response = "{}",
                              .items = R"([{"role":"user","content":"a"},{"id":"b"},{"id":"c"}])"};
  const auto page = [&](const std::string& query) {
    const auto text =
        input_items_page("resp_1", stored, "/v1/responses/resp_1/input_items" + query);
    return text ? *text : text.error().param;
  };
  EXPECT_EQ(page("?order=asc&limit=1"),
            R"({"object":"list","data":[{"role":"user","content":[{"type":"input_text",)"
            R"("text":"a"}],"type":"message","id":"resp_1_in0"}],"first_id":"resp_1_in0",)"
            R"("last_id":"resp_1_in0","has_more":true})");
  EXPECT_EQ(page("?after=c&limit=1"),
            R"({"object":"list","data":[{"id":"b","type":"message"}],"first_id":"b",)"
            R"("last_id":"b","has_more":true})");
  EXPECT_EQ(Json::parse(page(""))["data"].size(), 3);
  EXPECT_EQ(page("?limit=0"), "limit");
  EXPECT_EQ(page("?limit=x"), "limit");
  EXPECT_EQ(page("?order=up"), "order");
  EXPECT_EQ(page("?after=z"), "after");
}

}  // namespace
}  // namespace slipstream
