#include "retrieval/search/indexed_file.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "retrieval/index_test_support.h"

namespace slipstream {
namespace {

using testing::ElementsAre;

class IndexedFileTest : public IndexTest {
 protected:
  Result<std::string> read(std::string_view path) {
    Result<Database> database = open_index(index_path());
    const Result<Project> project = find_project(*database, root().string());
    EXPECT_TRUE(project);
    const Result<IndexedFile> file = find_indexed_file(*database, *project, path);
    if (!file) return std::unexpected(file.error());
    return read_indexed_file(*database, *project, *file);
  }
};

TEST_F(IndexedFileTest, AFileIsReadAsItIsNow) {
  write("src/a.txt", "heron\n");
  update();
  EXPECT_EQ(read("src/a.txt"), "heron\n");
  write("src/a.txt", "stork\n");
  EXPECT_EQ(read("src/a.txt"), "stork\n");
  std::filesystem::remove(root() / "src/a.txt");
  const Result<std::string> gone = read("src/a.txt");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kNotFound);
}

TEST_F(IndexedFileTest, WhatTheIndexDoesNotHaveIsNotRead) {
  write("a.txt", "heron\n");
  write(".env", "PASSWORD=heron\n");
  write("binary.dat", std::string("heron\0heron", 11));
  write("../outside.txt", "heron\n");
  std::filesystem::create_symlink("../outside.txt", root() / "link.txt");
  update();
  for (const char* path :
       {".env", "link.txt", "../outside.txt", "src/../a.txt", "./a.txt", "", "/", "/etc/passwd"}) {
    const Result<std::string> text = read(path);
    ASSERT_FALSE(text) << path;
    EXPECT_EQ(text.error().code, Code::kNotFound) << path;
  }
  const Result<std::string> binary = read("binary.dat");
  ASSERT_FALSE(binary);
  EXPECT_EQ(binary.error().message, "binary.dat is not read: binary");
}

TEST_F(IndexedFileTest, WhatWouldBeRefusedNowIsNotRead) {
  write("a.txt", "heron\n");
  write("folder/b.txt", "heron\n");
  write("../elsewhere/b.txt", "stork\n");
  update();
  write("a.txt", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + std::string(70, 'A') + "\n");
  const Result<std::string> key = read("a.txt");
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().message, "a.txt is not read: private key");
  std::filesystem::remove_all(root() / "folder");
  std::filesystem::create_symlink("../elsewhere", root() / "folder");
  EXPECT_FALSE(read("folder/b.txt")) << "a folder that has become a link";
}

TEST_F(IndexedFileTest, FilesAreListedInPages) {
  for (const char* name : {"b.txt", "a.txt", "c/d.txt"}) write(name, "heron\n");
  write("binary.dat", std::string("heron\0heron", 11));
  update();
  Result<Database> database = open_index(index_path());
  const Result<Project> project = find_project(*database, root().string());
  const auto page = [&](std::string_view after) {
    std::vector<std::string> paths;
    for (const IndexedFile& file : *list_indexed_files(*database, *project, after, 2)) {
      paths.push_back(file.path);
    }
    return paths;
  };
  EXPECT_THAT(page(""), ElementsAre("a.txt", "b.txt"));
  EXPECT_THAT(page("b.txt"), ElementsAre("c/d.txt"));
}

TEST_F(IndexedFileTest, TheTextOfADocumentComesFromTheIndex) {
  write("a.txt", "one\n\n\nfour\n");
  update();
  Result<Database> database = open_index(index_path());
  ASSERT_TRUE(database->run("UPDATE content SET is_converted = 1"));
  std::filesystem::remove(root() / "a.txt");
  EXPECT_EQ(read("a.txt"), "one\n\n\nfour\n");
}

}  // namespace
}  // namespace slipstream
