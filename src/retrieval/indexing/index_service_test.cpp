#include "retrieval/indexing/index_service.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "retrieval/index_test_support.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::chrono::seconds kLong(30);

class IndexServiceTest : public IndexTest {
 protected:
  std::unique_ptr<IndexService> start() const {
    auto service = IndexService::start({.path = index_path(), .n_threads = 1});
    EXPECT_TRUE(service) << service.error().message;
    return std::move(*service);
  }
  void add_root() const {
    Result<Database> database = open_index(index_path());
    EXPECT_TRUE(add_project(*database, root().string()));
  }
};

TEST_F(IndexServiceTest, FollowsTheFiles) {
  write("a.txt", "heron");
  add_root();
  const auto service = start();
  ASSERT_TRUE(service->sync(kLong));
  EXPECT_THAT(paths("heron"), ElementsAre("a.txt"));
  write("a.txt", "stork");
  ASSERT_TRUE(service->sync(kLong));
  EXPECT_THAT(paths("stork"), ElementsAre("a.txt"));
  write("new/folder/b.txt", "egret");
  ASSERT_TRUE(service->sync(kLong));
  EXPECT_THAT(paths("egret"), ElementsAre("new/folder/b.txt"));
  write("new/folder/c.txt", "crane");  // in a folder that it did not know before
  ASSERT_TRUE(service->sync(kLong));
  EXPECT_THAT(paths("crane"), ElementsAre("new/folder/c.txt"));
  std::filesystem::rename(root() / "new", root() / "moved");
  ASSERT_TRUE(service->sync(kLong));
  EXPECT_THAT(paths("crane"), ElementsAre("moved/folder/c.txt"));
  std::filesystem::remove_all(root() / "moved");
  ASSERT_TRUE(service->sync(kLong));
  EXPECT_THAT(paths("crane"), IsEmpty());
}

// The folders are made while the thread lists and watches those before.
TEST_F(IndexServiceTest, MissesNoFileOfAFolderThatIsBeingMade) {
  write("a.txt", "heron");
  add_root();
  const auto service = start();
  ASSERT_TRUE(service->sync(kLong));
  for (int i = 0; i < 200; ++i) {
    const std::string path = "new" + std::to_string(i) + "/folder/in/it/b.txt";
    const std::string word = "egret" + std::to_string(i);
    write(path, word);
    ASSERT_TRUE(service->sync(kLong));
    ASSERT_THAT(paths(word), ElementsAre(path));
  }
}

TEST_F(IndexServiceTest, FollowsTheRulesOfARepository) {
  ASSERT_EQ(std::system(("git init -q " + root().string()).c_str()), 0);
  write("a.txt", "one heron");
  write("b.txt", "another heron");
  add_root();
  const auto service = start();
  ASSERT_TRUE(service->sync(kLong));
  EXPECT_THAT(paths("heron"), UnorderedElementsAre("a.txt", "b.txt"));
  write(".gitignore", "b.txt\n");
  ASSERT_TRUE(service->sync(kLong));
  EXPECT_THAT(paths("heron"), ElementsAre("a.txt"));
}

TEST_F(IndexServiceTest, FindsProjectsThatOthersAddAndRemove) {
  const auto service = start();
  ASSERT_TRUE(service->sync(kLong));
  write("a.txt", "heron");
  add_root();
  ASSERT_TRUE(service->sync(kLong));
  EXPECT_THAT(paths("heron"), ElementsAre("a.txt"));
  {
    Result<Database> database = open_index(index_path());
    ASSERT_TRUE(remove_project(*database, find_project(*database, root().string())->id));
  }
  ASSERT_TRUE(service->sync(kLong));
  write("a.txt", "stork");
  ASSERT_TRUE(service->sync(kLong));
  add_root();
  ASSERT_TRUE(service->sync(kLong));
  EXPECT_THAT(paths("stork"), ElementsAre("a.txt"));
}

TEST_F(IndexServiceTest, OneOfSeveralWrites) {
  write("a.txt", "heron");
  add_root();
  auto first = start();
  ASSERT_TRUE(first->sync(kLong));
  EXPECT_TRUE(first->is_writer());
  const auto second = start();
  EXPECT_FALSE(second->is_writer());
  write("a.txt", "stork");
  ASSERT_TRUE(second->sync(kLong)) << "the first is asked";
  EXPECT_THAT(paths("stork"), ElementsAre("a.txt"));
  first.reset();
  write("a.txt", "egret");
  ASSERT_TRUE(second->sync(kLong)) << "the second goes on";
  EXPECT_THAT(paths("egret"), ElementsAre("a.txt"));
}

TEST_F(IndexServiceTest, AProjectThatVanishesIsAProblemOfItsOwn) {
  write("a.txt", "heron");
  add_root();
  const auto service = start();
  ASSERT_TRUE(service->sync(kLong));
  std::filesystem::remove_all(root());
  ASSERT_TRUE(service->sync(kLong));
  Result<Database> database = open_index(index_path());
  EXPECT_FALSE(find_project(*database, root().string())->problem.empty());
}

}  // namespace
}  // namespace slipstream
