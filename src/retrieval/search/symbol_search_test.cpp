#include "retrieval/search/symbol_search.h"

#include <gmock/gmock.h>

#include "retrieval/content/outliner.h"
#include "retrieval/index_test_support.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class SymbolSearchTest : public IndexTest {
 protected:
  void SetUp() override {
    if (!Outliner::is_available()) GTEST_SKIP() << "universal-ctags is not installed";
  }
  std::vector<FoundSymbol> find(SymbolRequest request) {
    Result<Database> database = open_index(index_path());
    const Result<std::vector<Project>> projects = list_projects(*database);
    const auto found = find_symbols(*database, *projects, request);
    EXPECT_TRUE(found) << found.error().message;
    return found.value_or(std::vector<FoundSymbol>{});
  }
  static std::vector<std::string> names(const std::vector<FoundSymbol>& found) {
    std::vector<std::string> names;
    for (const FoundSymbol& symbol : found) names.push_back(symbol.name);
    return names;
  }
};

TEST_F(SymbolSearchTest, SaysWhereANameIsDefined) {
  write("src/birds.py", "import os\n\nclass Heron:\n    def fly(self):\n        return 1\n");
  update();
  const std::vector<FoundSymbol> found = find({.name = "fly"});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].root, root().string());
  EXPECT_EQ(found[0].path, "src/birds.py");
  EXPECT_EQ(found[0].first_line, 4);
  EXPECT_EQ(found[0].last_line, 5);
  EXPECT_EQ(found[0].scope, "Heron");
  EXPECT_EQ(found[0].match, FoundSymbol::Match::kExact);
}

TEST_F(SymbolSearchTest, TheNameAsWrittenComesFirstThenOtherCaseThenLongerNames) {
  write("a.py",
        "def stork_nest():\n    pass\n\ndef Stork():\n    pass\n\ndef stork():\n    pass\n");
  update();
  EXPECT_THAT(names(find({.name = "stork"})), ElementsAre("stork", "Stork", "stork_nest"));
  EXPECT_THAT(names(find({.name = "STORK"})),
              testing::UnorderedElementsAre("stork", "Stork", "stork_nest"));
  EXPECT_THAT(names(find({.name = "tork"})), IsEmpty());
  EXPECT_THAT(find({.name = "stork", .n_results_max = 1}), SizeIs(1));
}

TEST_F(SymbolSearchTest, AScopeTellsApart) {
  write("a.py",
        "class Heron:\n    def fly(self):\n        pass\n\nclass GreyHeron:\n    def fly(self):\n  "
        "      pass\n");
  update();
  EXPECT_THAT(find({.name = "fly"}), SizeIs(2));
  for (const char* name : {"Heron.fly", "Heron::fly", "Heron.fly()"}) {
    const std::vector<FoundSymbol> found = find({.name = name});
    ASSERT_THAT(found, SizeIs(1)) << name;
    EXPECT_EQ(found[0].first_line, 2) << name;
  }
  EXPECT_THAT(find({.name = "Stork.fly"}), IsEmpty());
}

TEST_F(SymbolSearchTest, OnlyBelowAPath) {
  write("src/a.py", "def fly():\n    pass\n");
  write("tests/a.py", "def fly():\n    return 2\n");
  update();
  const std::vector<FoundSymbol> found = find({.name = "fly", .path_prefix = "tests/"});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].path, "tests/a.py");
}

TEST_F(SymbolSearchTest, ANameHasALength) {
  update();
  Result<Database> database = open_index(index_path());
  const Result<std::vector<Project>> projects = list_projects(*database);
  for (const std::string& name : {std::string(), std::string("  "), std::string(1000, 'a')}) {
    const auto found = find_symbols(*database, *projects, {.name = name});
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Code::kInvalidArgument);
  }
  EXPECT_TRUE(find_symbols(*database, *projects, {.name = "%' OR 1=1 --"}));
}

}  // namespace
}  // namespace slipstream
