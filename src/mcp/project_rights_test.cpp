#include "mcp/project_rights.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(ProjectRights, WhatNobodyIsNamedForAllSee) {
  const ProjectRights rights({"/srv/ann"}, {"/srv/bob"});
  EXPECT_TRUE(rights.show("/home/shared"));
  EXPECT_TRUE(rights.show("/srv/bobby"));
}

TEST(ProjectRights, FoldersOfOthersAreNotShown) {
  const ProjectRights rights({"/srv/ann"}, {"/srv/bob"});
  EXPECT_TRUE(rights.show("/srv/ann"));
  EXPECT_TRUE(rights.show("/srv/ann/project"));
  EXPECT_FALSE(rights.show("/srv/bob"));
  EXPECT_FALSE(rights.show("/srv/bob/project"));
}

TEST(ProjectRights, AProjectAroundAFolderOfOthersIsNotShown) {
  EXPECT_FALSE(ProjectRights({}, {"/srv/bob"}).show("/srv"));
  EXPECT_FALSE(ProjectRights({"/srv"}, {"/srv/bob"}).show("/srv"));
  EXPECT_TRUE(ProjectRights({"/srv/ann"}, {}).show("/srv"));
}

TEST(ProjectRights, TheInnerFolderCounts) {
  EXPECT_TRUE(ProjectRights({"/srv/ann"}, {"/srv"}).show("/srv/ann/project"));
  EXPECT_FALSE(ProjectRights({"/srv/ann"}, {"/srv"}).show("/srv/carl"));
  EXPECT_FALSE(ProjectRights({"/srv"}, {"/srv/bob"}).show("/srv/bob/project"));
}

TEST(ProjectRights, APathLiesInAFolderAsAWhole) {
  EXPECT_TRUE(lies_in("/a/b", "/a"));
  EXPECT_TRUE(lies_in("/a", "/a"));
  EXPECT_TRUE(lies_in("/a", "/"));
  EXPECT_FALSE(lies_in("/ab", "/a"));
  EXPECT_FALSE(lies_in("/", "/a"));
}

}  // namespace
}  // namespace slipstream
