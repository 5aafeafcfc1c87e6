#include "hub/cache_layout.h"

#include <gtest/gtest.h>

#include "base/file_lock.h"
#include "base/unique_fd.h"
#include "hub/test_cache.h"

namespace slipstream::hub {
namespace {

const ModelName kModel = TestCache::name("Org/Some-Repo.1");

TEST(CacheLayout, FoldersAreNamedAsHuggingfaceHubNamesThem) {
  EXPECT_EQ(folder_name(kModel), "models--Org--Some-Repo.1");
  EXPECT_EQ(model_of_folder("models--Org--Some-Repo.1")->repo_id(), "Org/Some-Repo.1");
  for (const char* other : {"models--gpt2", "datasets--a--b", ".locks", "models--..--b", ""}) {
    EXPECT_FALSE(model_of_folder(other)) << other;
  }
}

TEST(CacheLayout, LinksAreRelativeAndLeadToTheBlob) {
  const TestCache cache;
  const RepoCache repo(cache.path(), kModel);
  cache.install(kModel, TestCache::commit('1'), "M-Q8_0.gguf", 'a');
  cache.install(kModel, TestCache::commit('1'), "BF16/deep/M.gguf", 'b');
  namespace fs = std::filesystem;
  const fs::path shallow = repo.snapshot(TestCache::commit('1'), "M-Q8_0.gguf");
  const fs::path deep = repo.snapshot(TestCache::commit('1'), "BF16/deep/M.gguf");
  EXPECT_EQ(fs::read_symlink(shallow), "../../blobs/" + std::string(64, 'a'));
  EXPECT_EQ(fs::read_symlink(deep), "../../../../blobs/" + std::string(64, 'b'));
  EXPECT_EQ(fs::canonical(shallow), fs::canonical(repo.blob(TestCache::hash('a'))));
  EXPECT_EQ(fs::canonical(deep), fs::canonical(repo.blob(TestCache::hash('b'))));
  // A second link to another blob replaces the first.
  ASSERT_TRUE(repo.link(TestCache::commit('1'), "M-Q8_0.gguf", TestCache::hash('b')));
  EXPECT_EQ(fs::canonical(shallow), fs::canonical(repo.blob(TestCache::hash('b'))));
  EXPECT_EQ(repo.main_commit(), TestCache::commit('1'));
  EXPECT_EQ(read_small_file((repo.folder() / "refs" / "main").string()), TestCache::commit('1'));
}

TEST(CacheLayout, ARefThatIsNoCommitIsNone) {
  const TestCache cache;
  const RepoCache repo(cache.path(), kModel);
  EXPECT_EQ(repo.main_commit(), "");
  ASSERT_TRUE(repo.make_folders());
  TestCache::write(repo.folder() / "refs" / "main", "../../etc");
  EXPECT_EQ(repo.main_commit(), "");
}

TEST(CacheLayout, ALockIsHeldByOneAndEndsWithItsHolder) {
  const TestCache cache;
  const RepoCache repo(cache.path(), kModel);
  ASSERT_TRUE(repo.make_folders());
  const std::filesystem::path path = repo.lock("abc");
  EXPECT_EQ(path, cache.path() / ".locks" / "models--Org--Some-Repo.1" / "abc.lock");
  {
    const auto first = FileLock::try_lock(path);
    ASSERT_TRUE(first && *first);
    const auto second = FileLock::try_lock(path);
    ASSERT_TRUE(second);
    EXPECT_FALSE(second->has_value());
  }
  const auto third = FileLock::try_lock(path);
  ASSERT_TRUE(third);
  EXPECT_TRUE(third->has_value());
}

}  // namespace
}  // namespace slipstream::hub
