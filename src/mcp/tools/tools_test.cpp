#include <gmock/gmock.h>

#include "mcp/mcp_limits.h"
#include "mcp/mcp_test_support.h"
#include "retrieval/content/outliner.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ToolsTest : public McpTest {
 protected:
  static std::string text_in(const Json& result) { return result["content"][0]["text"]; }
  static Json json_in(const Json& result) { return result["structuredContent"]; }
};

TEST_F(ToolsTest, SearchSaysWhereAndWhyAndWhetherTheIndexIsFresh) {
  write("notes/birds.md", "# Waders\n\nThe heron stands in the river.\n");
  serve_root();
  const Json result = call("search", {{"query", "heron river"}});
  EXPECT_THAT(text_in(result),
              HasSubstr(root().string() + "/notes/birds.md:1-3 (has heron, river)\n# Waders"));
  EXPECT_THAT(text_in(result), HasSubstr("The index is fresh."));
  const Json json = json_in(result);
  EXPECT_EQ(json["index"]["is_fresh"], true);
  EXPECT_EQ(json["places"][0]["project"], root().string());
  EXPECT_EQ(json["places"][0]["path"], "notes/birds.md");
  EXPECT_EQ(json["places"][0]["first_line"], 1);
  EXPECT_EQ(json["is_nothing_relevant"], false);
}

TEST_F(ToolsTest, SearchFindsWhatWasWrittenJustNow) {
  serve_root();
  write("a.txt", "The stork has come.\n");
  EXPECT_EQ(json_in(call("search", {{"query", "stork"}}))["places"][0]["path"], "a.txt");
}

TEST_F(ToolsTest, NothingRelevantIsAnAnswer) {
  write("a.txt", "heron\n");
  serve_root();
  const Json result = call("search", {{"query", "zebra"}});
  EXPECT_EQ(result["isError"], false);
  EXPECT_THAT(text_in(result), StartsWith("Nothing in the index answers this."));
  EXPECT_EQ(json_in(result)["is_nothing_relevant"], true);
  EXPECT_EQ(json_in(result)["places"], Json::array());
}

TEST_F(ToolsTest, APlaceIsCutBetweenCharacters) {
  std::string text = "heron ";
  while (text.size() < 3 * kMcpLimits.place_bytes_max) text += "ä";
  write("a.txt", text);
  serve_root();
  const Json place = json_in(call("search", {{"query", "heron"}}))["places"][0];
  EXPECT_EQ(place["is_cut"], true);
  EXPECT_LE(place["text"].get<std::string>().size(), kMcpLimits.place_bytes_max);
  EXPECT_THAT(place["text"].get<std::string>(), Not(HasSubstr("\xEF\xBF\xBD")));
}

TEST_F(ToolsTest, ProjectsAreNamedByPathOrLastPart) {
  write("a.txt", "heron\n");
  write("../other/a.txt", "heron too\n");
  const std::string other = (root().parent_path() / "other").string();
  serve({.index_path = {}, .folders = {root().string(), other}});
  EXPECT_EQ(json_in(call("search", {{"query", "heron"}}))["places"].size(), 2U);
  for (const std::string& named : {other, other + "/", std::string("other"), other + "/below"}) {
    const Json places = json_in(call("search", {{"query", "heron"}, {"project", named}}))["places"];
    ASSERT_EQ(places.size(), 1U) << named;
    EXPECT_EQ(places[0]["project"], other) << named;
  }
  EXPECT_THAT(failure("search", {{"query", "heron"}, {"project", "third"}}),
              HasSubstr("there is no such project: there are"));
  EXPECT_THAT(failure("read_lines", {{"path", "a.txt"}}), HasSubstr("say which as 'project'"));
  EXPECT_EQ(json_in(call("read_lines", {{"path", "a.txt"}, {"project", "other"}}))["text"],
            "heron too\n");
  EXPECT_EQ(json_in(call("read_lines", {{"path", other + "/a.txt"}}))["text"], "heron too\n");
}

TEST_F(ToolsTest, ProjectsThatAreNotShownDoNotExist) {
  write("a.txt", "heron\n");
  write("../other/a.txt", "heron of the other\n");
  const std::string other = (root().parent_path() / "other").string();
  {
    Result<Database> database = open_index(index_path());
    ASSERT_TRUE(add_project(*database, other));
  }
  serve_root();
  EXPECT_EQ(json_in(call("search", {{"query", "heron"}}))["places"].size(), 1U);
  EXPECT_EQ(json_in(call("list_projects", Json::object()))["projects"].size(), 1U);
  for (const Json& arguments :
       {Json{{"path", other + "/a.txt"}}, Json{{"path", "a.txt"}, {"project", other}},
        Json{{"path", "../other/a.txt"}}}) {
    const std::string message = failure("read_lines", arguments);
    EXPECT_THAT(message, Not(HasSubstr("of the other")));
  }
  EXPECT_THAT(failure("search", {{"query", "heron"}, {"project", other}}), Not(HasSubstr(other)));
}

TEST_F(ToolsTest, LinesAreReadAsTheyAre) {
  std::string text;
  for (int i = 1; i <= 1500; ++i) text += "line " + std::to_string(i) + "\n";
  write("a.txt", text);
  serve_root();
  EXPECT_EQ(
      json_in(call("read_lines", {{"path", "a.txt"}, {"first_line", 2}, {"last_line", 3}}))["text"],
      "line 2\nline 3\n");
  const Json usual = json_in(call("read_lines", {{"path", "./a.txt"}}));
  EXPECT_EQ(usual["last_line"], 200);
  EXPECT_EQ(usual["n_lines"], 1500);
  const Json many =
      json_in(call("read_lines", {{"path", "a.txt"}, {"first_line", 1}, {"last_line", 1500}}));
  EXPECT_EQ(many["last_line"], 1000);
  EXPECT_EQ(many["is_cut"], true);
  const Json end = json_in(
      call("read_lines", {{"path", "a.txt"}, {"first_line", 1499}, {"last_line", 90'000'000}}));
  EXPECT_EQ(end["text"], "line 1499\nline 1500\n");
  EXPECT_EQ(end["is_cut"], false);
  EXPECT_EQ(failure("read_lines", {{"path", "a.txt"}, {"first_line", 1501}}),
            "a.txt has only 1500 lines");
  EXPECT_EQ(failure("read_lines", {{"path", "a.txt"}, {"first_line", 9}, {"last_line", 8}}),
            "'last_line' is before 'first_line'");
}

TEST_F(ToolsTest, AnswersAreBounded) {
  write("a.txt", std::string(1'000'000, 'x') + "\n");
  serve_root();
  const Json status = call("index_status", Json::object());
  EXPECT_THAT(text_in(status), HasSubstr("data in long lines"));
  std::string text;
  for (int i = 0; i < 60; ++i) text += std::string(1900, 'y') + "\n";
  write("b.txt", text);
  const Json lines = json_in(call("read_lines", {{"path", "b.txt"}}));
  EXPECT_LE(lines["text"].get<std::string>().size(), kMcpLimits.lines_bytes_max);
  EXPECT_EQ(lines["is_cut"], true);
  EXPECT_LT(lines["last_line"], 60);
}

TEST_F(ToolsTest, SecretsAndWhatLiesOutsideAreNotRead) {
  write("a.txt", "heron\n");
  write(".env", "PASSWORD=heron\n");
  write("../outside.txt", "heron\n");
  std::filesystem::create_symlink("../outside.txt", root() / "link.txt");
  serve_root();
  for (const std::string& path :
       {std::string(".env"), std::string("link.txt"), std::string("../outside.txt"),
        std::string("/etc/passwd"), root().string() + "/../outside.txt", root().string() + "/.env",
        std::string("a.txt/../../outside.txt")}) {
    const std::string message = failure("read_lines", {{"path", path}});
    EXPECT_THAT(message, Not(HasSubstr("PASSWORD"))) << path;
    EXPECT_THAT(failure("find_related", {{"path", path}}), Not(HasSubstr("PASSWORD"))) << path;
  }
  EXPECT_EQ(json_in(call("search", {{"query", "PASSWORD"}}))["places"], Json::array());
}

TEST_F(ToolsTest, SymbolsAndRelatedPlacesAreFound) {
  if (!Outliner::is_available()) GTEST_SKIP() << "universal-ctags is not installed";
  write("birds.py",
        "class Heron:\n    def wade_slowly(self, river_depth):\n        return river_depth\n");
  write("test_birds.py",
        "from birds import Heron\n\nassert Heron().wade_slowly(river_depth=3) == 3\n");
  serve_root();
  const Json symbols = json_in(call("find_symbol", {{"name", "wade_slowly"}}))["symbols"];
  ASSERT_EQ(symbols.size(), 1U);
  EXPECT_EQ(symbols[0]["path"], "birds.py");
  EXPECT_EQ(symbols[0]["first_line"], 2);
  EXPECT_EQ(symbols[0]["scope"], "Heron");
  EXPECT_THAT(text_in(call("find_symbol", {{"name", "swim"}})),
              StartsWith("Nothing that the index knows"));
  const Json related = json_in(call("find_related", {{"path", "birds.py"}, {"line", 2}}))["places"];
  ASSERT_EQ(related.size(), 1U);
  EXPECT_EQ(related[0]["path"], "test_birds.py");
}

TEST_F(ToolsTest, FoldersAreAddedOnlyWhereClientsMay) {
  write("a.txt", "heron\n");
  serve({.index_path = {}, .folders = {}, .clients_may_add = true});
  EXPECT_THAT(failure("search", {{"query", "heron"}}), HasSubstr("slipstream index add FOLDER"));
  EXPECT_THAT(failure("add_project", {{"folder", "project"}}), HasSubstr("whole path"));
  EXPECT_THAT(failure("add_project", {{"folder", "/no/such/folder"}}),
              HasSubstr("there is no folder"));
  EXPECT_THAT(failure("add_project", {{"folder", "/"}}), HasSubstr("cannot be a project"));
  EXPECT_EQ(call("add_project", {{"folder", root().string()}})["isError"], false);
  const Json waited = json_in(call("wait_until_fresh", {{"seconds", 30}}));
  EXPECT_EQ(waited["index"]["is_fresh"], true) << waited;
  EXPECT_EQ(json_in(call("search", {{"query", "heron"}}))["places"].size(), 1U);
}

TEST_F(ToolsTest, FoldersCannotBeAddedBesideThoseThatWereChosen) {
  write("a.txt", "heron\n");
  std::filesystem::create_directories(root().parent_path() / "other");
  serve({.index_path = {}, .folders = {root().string()}, .clients_may_add = true});
  const Json reply = ask(modern(
      "tools/call", {{"name", "add_project"},
                     {"arguments", {{"folder", (root().parent_path() / "other").string()}}}}));
  EXPECT_EQ(reply["error"]["message"], "Unknown tool: add_project");
}

}  // namespace
}  // namespace slipstream
