#include "mcp/resources.h"

#include <gmock/gmock.h>

#include "mcp/mcp_limits.h"
#include "mcp/mcp_test_support.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::Optional;
using testing::UnorderedElementsAre;

class ResourcesTest : public McpTest {
 protected:
  Json read_uri(const std::string& uri) { return ask(modern("resources/read", {{"uri", uri}})); }
  [[nodiscard]] std::string uri(const std::string& path) const {
    return file_uri((root() / path).string());
  }
  std::vector<std::string> all_names() {
    std::vector<std::string> names;
    Json params = Json::object();
    while (true) {
      const Json page = ask(modern("resources/list", params))["result"];
      for (const Json& one : page["resources"]) names.push_back(one["name"]);
      if (!page.contains("nextCursor")) return names;
      params["cursor"] = page["nextCursor"];
    }
  }
};

TEST_F(ResourcesTest, FilesOfTheIndexAreResources) {
  write("a.txt", "heron\n");
  write("Größe der Vögel.md", "# Storks\n");
  write(".env", "PASSWORD=heron\n");
  write("picture.dat", std::string("\0\0\0\0", 4));
  serve_root();
  EXPECT_THAT(all_names(), UnorderedElementsAre("a.txt", "Größe der Vögel.md"));
  const Json contents = read_uri(uri("Größe der Vögel.md"))["result"]["contents"];
  ASSERT_EQ(contents.size(), 1U);
  EXPECT_EQ(contents[0]["text"], "# Storks\n");
  EXPECT_EQ(contents[0]["uri"], uri("Größe der Vögel.md"));
  const Json templates = ask(modern("resources/templates/list"))["result"]["resourceTemplates"];
  ASSERT_EQ(templates.size(), 1U);
  EXPECT_EQ(templates[0]["uriTemplate"], file_uri(root().string()) + "/{+path}");
}

TEST_F(ResourcesTest, TheyAreListedInPages) {
  std::vector<std::string> names;
  for (int i = 0; i < kMcpLimits.resources_of_page_max + 30; ++i) {
    names.push_back("file" + std::to_string(i) + ".txt");
    write(names.back(), "heron " + std::to_string(i));
  }
  serve_root();
  EXPECT_THAT(all_names(), testing::UnorderedElementsAreArray(names));
}

TEST_F(ResourcesTest, NothingElseIs) {
  write("a.txt", "heron\n");
  write(".env", "PASSWORD=heron\n");
  write("../outside.txt", "heron\n");
  std::filesystem::create_symlink("../outside.txt", root() / "link.txt");
  serve_root();
  const std::string base = file_uri(root().string());
  for (const std::string& wrong : {base,
                                   base + "/",
                                   base + "/.env",
                                   base + "/link.txt",
                                   base + "/../outside.txt",
                                   base + "/%2e%2e/outside.txt",
                                   base + "/a.txt%00",
                                   base + "/a.txt?x",
                                   base + "/a.txt#1",
                                   base + "//a.txt",
                                   base + "/./a.txt",
                                   base + "/%",
                                   base + "/%zz",
                                   base + "x/a.txt",
                                   std::string("file:///etc/passwd"),
                                   std::string("file:///proc/self/environ"),
                                   std::string("http://localhost/a.txt"),
                                   std::string("a.txt"),
                                   std::string(),
                                   std::string(20'000, 'a')}) {
    const Json reply = read_uri(wrong);
    ASSERT_TRUE(reply.contains("error")) << wrong << reply;
    EXPECT_EQ(reply["error"]["code"], kRpcInvalidParams) << wrong;
  }
  initialize("2025-11-25");
  EXPECT_EQ(ask(message("resources/read", {{"uri", "file:///etc/passwd"}}))["error"]["code"],
            -32002);
}

TEST_F(ResourcesTest, UrisAreEscaped) {
  EXPECT_EQ(file_uri("/a b/ä%?#"), "file:///a%20b/%C3%A4%25%3F%23");
  EXPECT_THAT(path_of_uri("file:///a%20b/%C3%A4%25%3F%23"), Optional(std::string("/a b/ä%?#")));
  EXPECT_THAT(path_of_uri("file://localhost/a"), Optional(std::string("/a")));
  EXPECT_EQ(path_of_uri("file://elsewhere/a"), std::nullopt);
}

}  // namespace
}  // namespace slipstream
