#include "retrieval/search/searcher.h"

#include <gmock/gmock.h>

#include "retrieval/content/outliner.h"
#include "retrieval/index_test_support.h"

namespace slipstream {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using SearcherTest = IndexTest;

std::string filler(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += "The request is read and an answer is written.\n";
  return text;
}

TEST_F(SearcherTest, SaysWhereAndWhy) {
  write("notes/birds.md", filler(5) + "\n# Waders\n\nThe heron stands in the river.\n");
  update();
  const SearchAnswer answer = search("heron river");
  ASSERT_THAT(answer.found, SizeIs(1));
  const Found& found = answer.found.front();
  EXPECT_EQ(found.root, root().string());
  EXPECT_EQ(found.path, "notes/birds.md");
  EXPECT_LE(found.first_line, 9);
  EXPECT_GE(found.last_line, 9);
  EXPECT_TRUE(found.text.contains("The heron stands"));
  EXPECT_THAT(found.terms, ElementsAre("heron", "river"));
  EXPECT_FALSE(found.is_changed);
  write("notes/birds.md", "nothing any more");
  EXPECT_TRUE(search("heron river").found.front().is_changed);
}

TEST_F(SearcherTest, WhatHasMoreOfTheQueryComesFirst) {
  write("a.txt", "the heron flies");
  write("b.txt", "the river rises and the river falls");
  write("c.txt", "the heron by the river");
  update();
  EXPECT_EQ(paths("heron river").front(), "c.txt");
}

TEST_F(SearcherTest, NamesAreFoundInAnyStyle) {
  write("a.py", "def parse_http_request(data):\n    return data\n");
  write("b.js", filler(3) + "const x = parseHttpRequest(data);\n");
  update();
  EXPECT_THAT(paths("ParseHTTPRequest"), testing::UnorderedElementsAre("a.py", "b.js"));
  EXPECT_THAT(paths("parse request"), Contains("a.py"));
}

TEST_F(SearcherTest, TheDefinitionComesBeforeItsUses) {
  if (!Outliner::is_available()) GTEST_SKIP() << "universal-ctags is not installed";
  for (int i = 0; i < 5; ++i) {
    write("use" + std::to_string(i) + ".c",
          "void f() { frobnicate(1); frobnicate(2); frobnicate(3); }\n");
  }
  write("core/engine.c", filler(30) + "int frobnicate(int x) {\n  return x;\n}\n" + filler(30));
  update();
  const SearchAnswer answer = search("frobnicate");
  EXPECT_EQ(answer.found.front().path, "core/engine.c");
  EXPECT_TRUE(answer.found.front().defines_name);
}

TEST_F(SearcherTest, PathsAreFound) {
  write("drivers/net/ethernet/intel/igb_main.c", "int x;\n");
  write("other.c", "int y;\n");
  update();
  EXPECT_THAT(paths("intel ethernet driver"), ElementsAre("drivers/net/ethernet/intel/igb_main.c"));
}

TEST_F(SearcherTest, QuotedWordsStandTogether) {
  write("a.txt", "left is no space and device on");
  write("b.txt", "error: no space left on device");
  update();
  EXPECT_EQ(paths("\"no space left on device\"").front(), "b.txt");
}

TEST_F(SearcherTest, NothingRelevantIsAnAnswer) {
  write("a.txt", filler(20));
  update();
  const SearchAnswer answer = search("zebra crossing in the request");
  EXPECT_TRUE(answer.is_nothing_relevant);
  EXPECT_THAT(answer.found, IsEmpty());
}

TEST_F(SearcherTest, ANameAnswersAQuestionInOtherWords) {
  write("a.txt", filler(20) + "The amber anchor ferry leaves from pier 12.\n");
  write("b.txt", filler(20) + "An anchor is made of iron.\nOld amber is darker.\n");
  update();
  EXPECT_THAT(paths("where do passengers board the amber anchor boat"),
              testing::ElementsAre("a.txt", "b.txt"));
}

TEST_F(SearcherTest, AFileGivesAFewPlaces) {
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += "The heron number " + std::to_string(i) + ".\n" + filler(40) + "\n";
  write("a.txt", text);
  write("b.txt", "One heron.\n");
  update();
  EXPECT_LE(std::ranges::count(paths("heron"), "a.txt"), 3);
  EXPECT_THAT(paths("heron"), Contains("b.txt"));
}

TEST_F(SearcherTest, PlacesBelowAPath) {
  write("src/a.txt", "heron");
  write("docs/a.txt", "heron too");
  update();
  const SearchAnswer answer = search("heron", {.path_prefix = "docs/"});
  ASSERT_THAT(answer.found, SizeIs(1));
  EXPECT_EQ(answer.found.front().path, "docs/a.txt");
}

TEST_F(SearcherTest, AQueryNeedsWords) {
  write("a.txt", "heron");
  update();
  const auto searcher = Searcher::open(index_path());
  ASSERT_TRUE(searcher);
  for (const char* query : {"", "  ", "?!", "\"\"", "\xFF\xFE"}) {
    const Result<SearchAnswer> answer = (*searcher)->search({.query = query});
    ASSERT_FALSE(answer) << query;
    EXPECT_EQ(answer.error().code, Code::kInvalidArgument);
  }
  EXPECT_FALSE((*searcher)->search({.query = "heron", .project = 77}));
}

TEST_F(SearcherTest, SyntaxOfTheFullTextSearchMeansNothing) {
  write("a.txt", "heron and stork");
  update();
  for (const char* query : {"heron* OR", "NEAR(heron stork)", "names:heron", "heron AND", "-heron",
                            "^heron", "heron\"", "{heron}", "heron' OR 1=1 --"}) {
    EXPECT_THAT(paths(query), ElementsAre("a.txt")) << query;
  }
}

TEST_F(SearcherTest, ReadsWhileAnotherWrites) {
  write("a.txt", "heron");
  update();
  const auto searcher = Searcher::open(index_path());
  ASSERT_TRUE(searcher);
  Result<Database> database = open_index(index_path());
  Result<Transaction> transaction = Transaction::begin(*database);
  ASSERT_TRUE(transaction);
  ASSERT_TRUE(database->run("DELETE FROM file"));
  EXPECT_THAT((*searcher)->search({.query = "heron"})->found, SizeIs(1));
  ASSERT_TRUE(transaction->commit());
  EXPECT_THAT((*searcher)->search({.query = "heron"})->found, IsEmpty());
}

}  // namespace
}  // namespace slipstream
