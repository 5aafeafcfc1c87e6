// Tests of installed.h and removal.h on caches as downloads leave them.
#include "hub/installed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_lock.h"
#include "hub/removal.h"
#include "hub/test_cache.h"

namespace slipstream::hub {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

class Installed : public testing::Test {
 protected:
  std::vector<std::string> names() {
    std::vector<std::string> texts;
    for (const InstalledModel& model : list_installed(cache_.path()).value()) {
      texts.push_back(model.name.text());
    }
    return texts;
  }
  void install(const char* file, char digit, char commit = '1') {
    cache_.install(name_, TestCache::commit(commit), file, digit);
  }
  void remove(const char* what) {
    const Result<RemovalPlan> plan = plan_removal(cache_.path(), TestCache::name(what));
    ASSERT_TRUE(plan) << plan.error().message;
    ASSERT_TRUE(carry_out(*plan, cache_.path(), TestCache::name(what)));
  }
  [[nodiscard]] bool has_blob(char digit) const {
    return fs::exists(repo_.blob(TestCache::hash(digit)));
  }

  TestCache cache_;
  ModelName name_ = TestCache::name("a/b");
  RepoCache repo_ = RepoCache(cache_.path(), name_);
};

TEST_F(Installed, ListsWholeModelsOnly) {
  EXPECT_THAT(names(), IsEmpty());
  install("M-Q8_0.gguf", 'a');
  install("M-Q4_0-00001-of-00002.gguf", 'b');  // and no second part
  install("README.md", 'c');
  install("gone-Q2_K.gguf", 'd');
  fs::remove(repo_.blob(TestCache::hash('d')));
  EXPECT_THAT(names(), ElementsAre("a/b:Q8_0"));
  install("M-Q4_0-00002-of-00002.gguf", 'e');
  EXPECT_THAT(names(), ElementsAre("a/b:Q4_0", "a/b:Q8_0"));
  EXPECT_EQ(list_installed(cache_.path())->at(0).n_bytes, 2 * 8192U);
  EXPECT_EQ(list_installed(cache_.path())->at(0).files.size(), 2U);
}

TEST_F(Installed, IsFoundByQuantFromTheSnapshotOfMain) {
  install("M-Q8_0.gguf", 'a', '1');
  install("M-Q8_0.gguf", 'b', '2');  // main is this one now
  const Result<InstalledModel> found = find_installed(cache_.path(), TestCache::name("a/b:q8_0"));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->commit, TestCache::commit('2'));
  EXPECT_EQ(found->files.at(0), repo_.snapshot(TestCache::commit('2'), "M-Q8_0.gguf"));
  // Without a quant, the only model is found.
  EXPECT_EQ(find_installed(cache_.path(), name_)->name.text(), "a/b:Q8_0");
}

TEST_F(Installed, WhatIsNotThereNamesThePull) {
  EXPECT_EQ(find_installed(cache_.path(), TestCache::name("a/b:Q8_0")).error().message,
            "a/b:Q8_0 is not installed: slipstream pull a/b:Q8_0");
  install("M-Q8_0.gguf", 'a');
  EXPECT_EQ(find_installed(cache_.path(), TestCache::name("a/b:Q2_K")).error().message,
            "a/b:Q2_K is not installed (installed are: Q8_0): slipstream pull a/b:Q2_K");
}

TEST_F(Installed, RemovalTakesTheBlobsThatNobodyElseNeeds) {
  install("M-Q8_0.gguf", 'a', '1');
  install("M-Q8_0.gguf", 'a', '2');  // in two snapshots
  install("copy-of-Q4_0.gguf", 'b');
  install("M-Q4_0.gguf", 'b');  // one blob with two names
  install("README.md", 'c');
  remove("a/b:Q8_0");
  EXPECT_FALSE(has_blob('a'));
  EXPECT_FALSE(fs::exists(repo_.snapshots() / TestCache::commit('2')));
  remove("a/b:copy-of-Q4_0");
  EXPECT_TRUE(has_blob('b'));
  EXPECT_THAT(names(), ElementsAre("a/b:Q4_0"));
  remove("a/b");
  EXPECT_FALSE(has_blob('b'));
  EXPECT_TRUE(has_blob('c'));  // belongs to another program
  EXPECT_EQ(plan_removal(cache_.path(), name_).error().code, Code::kNotFound);
}

TEST_F(Installed, RemovalOfTheLastModelLeavesNoFolder) {
  install("dir/M-Q8_0.gguf", 'a');
  TestCache::write(repo_.incomplete(TestCache::hash('b')), std::string(8192, 'x'));
  TestCache::write(repo_.chunks(TestCache::hash('b')), "map");
  const Result<RemovalPlan> plan = plan_removal(cache_.path(), name_);
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->names, ElementsAre("a/b:Q8_0"));
  EXPECT_GE(plan->freed_bytes, 2 * 8192U);
  remove("a/b");
  EXPECT_FALSE(fs::exists(repo_.folder()));
}

TEST_F(Installed, RemovalLeavesAFileOutsideTheCacheAlone) {
  install("M-Q8_0.gguf", 'a');
  const TestCache elsewhere;
  const fs::path own = elsewhere.path() / "my-own-Q4_0.gguf";
  TestCache::write(own, std::string(8192, 'x'));
  const fs::path link = repo_.snapshot(TestCache::commit('1'), "M-Q4_0.gguf");
  fs::create_symlink(own, link);
  fs::create_directory_symlink(elsewhere.path(), repo_.snapshots() / TestCache::commit('9'));
  remove("a/b");
  EXPECT_FALSE(fs::is_symlink(link));
  EXPECT_FALSE(has_blob('a'));
  EXPECT_TRUE(fs::exists(own));
}

TEST_F(Installed, WhatIsBeingDownloadedIsNotRemoved) {
  install("M-Q8_0.gguf", 'a');
  const auto lock = FileLock::try_lock(repo_.lock(std::string(64, 'a')));
  ASSERT_TRUE(lock && *lock);
  const Result<RemovalPlan> plan = plan_removal(cache_.path(), name_);
  const Result<void> done = carry_out(*plan, cache_.path(), name_);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("is being downloaded"));
  EXPECT_THAT(names(), ElementsAre("a/b:Q8_0"));
}

}  // namespace
}  // namespace slipstream::hub
