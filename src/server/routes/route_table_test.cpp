#include "server/routes/route_table.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

namespace http = boost::beast::http;

TEST(RouteTable, FindsAPathAndThoseBelowOneWithASlash) {
  RouteTable table;
  table.add({.method = http::verb::get, .path = "/v1/models", .answer = {}});
  table.add({.method = http::verb::get, .path = "/v1/models/", .answer = {}, .is_open = true});
  ASSERT_NE(table.find("/v1/models"), nullptr);
  EXPECT_EQ(table.find("/v1/models")->path, "/v1/models");
  for (const char* path : {"/v1/models/", "/v1/models/a", "/v1/models/a/b"}) {
    ASSERT_NE(table.find(path), nullptr) << path;
    EXPECT_EQ(table.find(path)->path, "/v1/models/");
  }
  for (const char* path : {"", "/", "/v1", "/v1/model", "/v1/modelsx", "/V1/models"}) {
    EXPECT_EQ(table.find(path), nullptr) << path;
  }
}

TEST(RouteTable, APathMayHaveTwoMethods) {
  RouteTable table;
  table.add({.method = http::verb::get, .path = "/a/", .answer = {}});
  table.add({.method = http::verb::delete_, .path = "/a/", .answer = {}});
  EXPECT_EQ(table.find("/a/b", http::verb::delete_)->method, http::verb::delete_);
  EXPECT_EQ(table.find("/a/b", http::verb::get)->method, http::verb::get);
  EXPECT_EQ(table.find("/a/b", http::verb::post)->method, http::verb::get);
  EXPECT_EQ(table.find("/b", http::verb::get), nullptr);
  EXPECT_EQ(table.methods("/a/b"), "GET, DELETE");
  EXPECT_EQ(table.methods("/b"), "");
}

TEST(RouteTableDeathTest, HasOneRouteForAPathAndMethod) {
  RouteTable table;
  table.add({.method = http::verb::get, .path = "/a", .answer = {}});
  EXPECT_DEATH(table.add({.method = http::verb::get, .path = "/a", .answer = {}}), "two routes");
}

}  // namespace
}  // namespace slipstream
