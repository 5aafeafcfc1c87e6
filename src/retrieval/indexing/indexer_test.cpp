#include "retrieval/indexing/indexer.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <thread>

#include "retrieval/index_test_support.h"
#include "retrieval/retrieval_limits.h"
#include "retrieval/store/content_writer.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class IndexerTest : public IndexTest {
 protected:
  void git(const std::string& arguments) const {
    const std::string command = "git -C " + root().string() +
                                " -c user.name=t -c user.email=t@t -c init.defaultBranch=main " +
                                arguments + " >/dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  // So that the clock of files has moved on (file_work.cpp).
  static void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }
};

TEST_F(IndexerTest, ReadsWhatIsNewAndForgetsWhatIsGone) {
  write("a.txt", "the heron stands in the river");
  write("sub/b.md", "# Lantern\n\nan amber lantern");
  UpdateSummary first = update();
  EXPECT_EQ(first.n_files, 2);
  EXPECT_EQ(first.n_written, 2);
  EXPECT_THAT(paths("heron"), ElementsAre("a.txt"));
  EXPECT_THAT(paths("lantern"), ElementsAre("sub/b.md"));

  wait();
  update();  // what was read at once after it was written is read once more
  EXPECT_EQ(update().n_read, 0);

  write("a.txt", "the stork stands in the river");
  std::filesystem::remove(root() / "sub/b.md");
  const UpdateSummary second = update();
  EXPECT_EQ(second.n_read, 1);
  EXPECT_EQ(second.n_written, 1);
  EXPECT_EQ(second.n_removed, 1);
  EXPECT_THAT(paths("heron"), IsEmpty());
  EXPECT_THAT(paths("stork"), ElementsAre("a.txt"));
  EXPECT_THAT(paths("lantern"), IsEmpty());
}

TEST_F(IndexerTest, ARenamedFileIsNotWrittenAgain) {
  write("old_name.txt", "the heron stands in the river");
  update();
  std::filesystem::rename(root() / "old_name.txt", root() / "new_name.txt");
  const UpdateSummary updated = update();
  EXPECT_EQ(updated.n_written, 0);
  EXPECT_EQ(updated.n_removed, 1);
  EXPECT_THAT(paths("heron"), ElementsAre("new_name.txt"));
}

TEST_F(IndexerTest, ATextThatComesBackIsNotWrittenAgain) {
  write("a.txt", "the heron of one branch");
  update();
  write("a.txt", "the stork of another");
  EXPECT_EQ(update().n_written, 1);
  EXPECT_THAT(paths("heron"), IsEmpty());
  write("a.txt", "the heron of one branch");
  EXPECT_EQ(update().n_written, 0);
  EXPECT_THAT(paths("heron"), ElementsAre("a.txt"));
  EXPECT_THAT(paths("stork"), IsEmpty());
}

TEST_F(IndexerTest, TheSameTextInTwoFilesIsFoundInOne) {
  write("long/path/copy.txt", "the heron stands");
  write("a.txt", "the heron stands");
  EXPECT_EQ(update().n_written, 1);
  EXPECT_THAT(paths("heron"), ElementsAre("a.txt"));
  std::filesystem::remove(root() / "a.txt");
  update();
  EXPECT_THAT(paths("heron"), ElementsAre("long/path/copy.txt"));
}

TEST_F(IndexerTest, ARepositoryHasWhatGitWouldShow) {
  write("kept.c", "int heron;");
  write("ignored.o", "heron");
  write("build/out.txt", "heron");
  write("tracked/build/in.txt", "heron tracked");
  write("sub/local.txt", "heron");
  write("sub/.gitignore", "local.txt\n");
  write(".gitignore", "*.o\nbuild/\n");
  git("init");
  git("add -f kept.c tracked");
  update();
  EXPECT_THAT(paths("heron"), UnorderedElementsAre("kept.c", "tracked/build/in.txt"));
}

TEST_F(IndexerTest, AFolderWithinARepositoryHasItsRules) {
  git("init");
  write(".gitignore", "docs/*.tmp\n");
  write("docs/a.md", "heron");
  write("docs/b.tmp", "heron");
  Result<Database> database = open_index(index_path());
  const Result<Project> project = add_project(*database, (root() / "docs").string());
  Indexer indexer(*database, 1);
  ASSERT_TRUE(indexer.update(*project, {}));
  EXPECT_THAT(paths("heron"), ElementsAre("a.md"));
}

TEST_F(IndexerTest, ARepositoryWithinAFolderHasItsRules) {
  write("one/.gitignore", "*.log\n");
  write("one/a.txt", "heron");
  write("one/b.log", "heron");
  write("two/b.log", "heron of no repository");
  ASSERT_EQ(std::system(("git init -q " + (root() / "one").string()).c_str()), 0);
  update();
  EXPECT_THAT(paths("heron"), UnorderedElementsAre("one/a.txt", "two/b.log"));
}

TEST_F(IndexerTest, SecretsAndLinksAreNotRead) {
  write(".env", "heron=1");
  write("deploy.key", "heron");
  write("secrets/a.txt", "heron");
  write("notes.txt", "heron\n-----BEGIN PRIVATE KEY-----\n" + std::string(64, 'A') + "\n");
  write("a.txt", "heron");
  std::filesystem::create_symlink("a.txt", root() / "link.txt");
  std::filesystem::create_directory_symlink("..", root() / "up");
  update();
  EXPECT_THAT(paths("heron"), ElementsAre("a.txt"));
  EXPECT_THAT(counts().n_refused, ElementsAre(std::pair("private key", 1)));
}

TEST_F(IndexerTest, HostileFilesAreReadOrRefused) {
  write("zero.bin", std::string(10000, '\0'));
  write("huge.txt", std::string(kRetrievalLimits.file_bytes_max + 1, 'x'));
  write("line.js", std::string(4 << 20, 'x'));
  write("latin.txt", "caf\xE9 heron");
  write("empty.txt", "");
  write("new\nline.txt", "heron in a strange place");
  write("quote\".txt", "heron \"quoted\"");
  write(std::string("bad\xFF.txt"), "heron");
  std::string nested;
  for (int i = 0; i < 200'000; ++i) nested += "{";
  write("nested.c", nested);
  write("nested.py", std::string(100'000, '('));
  std::filesystem::path deep;
  for (int i = 0; i < 200; ++i) deep /= "d";
  write((deep / "deep.txt").string(), "heron");
  ::mkfifo((root() / "pipe").c_str(), 0600);
  update();
  EXPECT_THAT(paths("heron"), UnorderedElementsAre("latin.txt", "new\nline.txt", "quote\".txt"));
  EXPECT_THAT(counts().n_refused,
              UnorderedElementsAre(std::pair("binary", 1), std::pair("larger than 5 MiB", 1),
                                   std::pair("data in long lines", 3)));
}

TEST_F(IndexerTest, SomePathsAreUpdatedAlone) {
  write("a.txt", "heron");
  write("b.txt", "stork");
  update();
  write("a.txt", "egret");
  write("b.txt", "crane");
  write(".env", "ibis");
  Result<Database> database = open_index(index_path());
  const Result<Project> project = find_project(*database, root().string());
  Indexer indexer(*database, 1);
  const std::vector<std::string> changed = {"a.txt", "gone.txt", ".env"};
  const Result<UpdateSummary> updated = indexer.update_paths(*project, changed, {});
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_THAT(paths("egret"), ElementsAre("a.txt"));
  EXPECT_THAT(paths("stork"), ElementsAre("b.txt"));
  EXPECT_THAT(paths("ibis"), IsEmpty());
}

TEST_F(IndexerTest, ManyFilesAreReadByThreads) {
  for (int i = 0; i < 500; ++i) {
    write("d" + std::to_string(i % 7) + "/f" + std::to_string(i) + ".txt",
          "common heron" + std::to_string(i));
  }
  EXPECT_EQ(update().n_written, 500);
  EXPECT_THAT(paths("heron321"), ElementsAre("d6/f321.txt"));
}

TEST_F(IndexerTest, CanBeStopped) {
  for (int i = 0; i < 100; ++i) write("f" + std::to_string(i), "heron");
  Result<Database> database = open_index(index_path());
  const Result<Project> project = add_project(*database, root().string());
  Indexer indexer(*database, 2);
  std::stop_source stop;
  stop.request_stop();
  const Result<UpdateSummary> updated = indexer.update(*project, stop.get_token());
  ASSERT_FALSE(updated);
  EXPECT_EQ(updated.error().code, Code::kCancelled);
}

TEST_F(IndexerTest, AProjectThatIsRemovedMeanwhileLeavesNothing) {
  write("a.txt", "heron");
  Result<Database> database = open_index(index_path());
  const Result<Project> project = add_project(*database, root().string());
  ASSERT_TRUE(remove_project(*database, project->id));
  Indexer indexer(*database, 1);
  const Result<UpdateSummary> updated = indexer.update(*project, {});
  ASSERT_FALSE(updated);
  Result<Statement> left = database->prepare("SELECT count(*) FROM file");
  ASSERT_TRUE(left->step());
  EXPECT_EQ(left->integer(0), 0);
}

TEST_F(IndexerTest, UnusedTextsAreForgottenInTheEnd) {
  write("a.txt", "heron");
  update();
  std::filesystem::remove(root() / "a.txt");
  update();
  Result<Database> database = open_index(index_path());
  const Result<Project> project = find_project(*database, root().string());
  Result<ContentWriter> writer = ContentWriter::create(*database, project->id);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->forget_unused(0));
  Result<Statement> left = database->prepare("SELECT count(*) FROM chunk");
  ASSERT_TRUE(left->step());
  EXPECT_EQ(left->integer(0), 0);
  ASSERT_TRUE(database->run("INSERT INTO " + chunk_words(project->id) + "(" +
                            chunk_words(project->id) + ") VALUES('integrity-check')"));
}

TEST_F(IndexerTest, ProjectsDoNotOverlap) {
  write("sub/a.txt", "heron");
  update();
  Result<Database> database = open_index(index_path());
  EXPECT_FALSE(add_project(*database, (root() / "sub").string()));
  EXPECT_FALSE(add_project(*database, root().parent_path().string()));
  EXPECT_TRUE(add_project(*database, root().string())) << "it is there already";
  EXPECT_EQ(list_projects(*database)->size(), 1U);
  EXPECT_EQ(find_project(*database, (root() / "sub").string())->root, root().string());
  EXPECT_EQ(find_project(*database, "project")->root, root().string());
  EXPECT_FALSE(find_project(*database, "other"));
}

TEST_F(IndexerTest, AnIndexOfAnotherVersionIsMadeAgain) {
  write("a.txt", "heron");
  update();
  {
    Result<Database> database = open_index(index_path());
    ASSERT_TRUE(database->run("PRAGMA user_version = 0"));
  }
  EXPECT_EQ(update().n_written, 1);
  EXPECT_THAT(paths("heron"), ElementsAre("a.txt"));
  {
    Result<Database> database = open_index(index_path());
    ASSERT_TRUE(database->run("PRAGMA user_version = 1000"));
  }
  const Result<Database> newer = open_index(index_path());
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, Code::kUnsupported);
}

TEST_F(IndexerTest, AFileOfAnotherProgramIsLeftAlone) {
  const std::string path = root().string() + "/other.db";
  {
    Result<Database> other = Database::open(path, Database::Access::kWrite);
    ASSERT_TRUE(other->run("PRAGMA application_id = 77; CREATE TABLE theirs(a)"));
  }
  EXPECT_FALSE(open_index(path));
  std::ofstream(root() / "text.db") << std::string(5000, 'x');
  const Result<Database> text = open_index((root() / "text.db").string());
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace slipstream
