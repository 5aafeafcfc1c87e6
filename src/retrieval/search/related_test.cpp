#include "retrieval/search/related.h"

#include <gmock/gmock.h>

#include "retrieval/index_test_support.h"

namespace slipstream {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class RelatedTest : public IndexTest {
 protected:
  Result<std::vector<Found>> find(const RelatedRequest& request) {
    const auto searcher = Searcher::open(index_path());
    EXPECT_TRUE(searcher);
    const Result<Project> project = find_project((*searcher)->database(), root().string());
    EXPECT_TRUE(project);
    return RelatedFinder((*searcher)->database()).find(*project, request);
  }
  std::vector<std::string> related_paths(const RelatedRequest& request) {
    const Result<std::vector<Found>> found = find(request);
    EXPECT_TRUE(found) << found.error().message;
    std::vector<std::string> paths;
    for (const Found& place : found.value_or(std::vector<Found>{})) paths.push_back(place.path);
    return paths;
  }
};

TEST_F(RelatedTest, WhatSharesRareTermsIsRelated) {
  write("a.c", "int wade(struct heron *h) { return heron_legs(h) + river_depth(h); }\n");
  write("b.c", "void nest(struct heron *h) { h->eggs = heron_legs(h); river_depth(h); }\n");
  write("c.c", "int print(const char *text) { return puts(text); }\n");
  for (int i = 0; i < 30; ++i) {
    const std::string number = std::to_string(i);
    write("filler" + number + ".c", "int x" + number + "(void) { return " + number + "; }\n");
  }
  update();
  EXPECT_THAT(related_paths({.path = "a.c"}), ElementsAre("b.c"));
  const Result<std::vector<Found>> found = find({.path = "a.c", .line = 1});
  ASSERT_TRUE(found);
  EXPECT_THAT(found->front().terms, Contains("heronlegs"));
}

TEST_F(RelatedTest, AFileIsNotRelatedToItselfNorToOneTermInCommon) {
  write("a.txt", "The heron wades.\n");
  write("copy.txt", "The heron wades.\n");
  write("b.txt", "One heron, many other things of which nothing else is shared.\n");
  update();
  EXPECT_THAT(related_paths({.path = "a.txt"}), Not(Contains("a.txt")));
  EXPECT_THAT(related_paths({.path = "a.txt"}), Not(Contains("b.txt")));
}

TEST_F(RelatedTest, ALineChoosesThePlace) {
  std::string text = "stork nest chimney\n";
  for (int i = 0; i < 300; ++i) text += "nothing of interest stands in this line\n\n";
  text += "heron river depth\n";
  write("a.txt", text);
  write("storks.txt", "stork nest chimney\n");
  write("herons.txt", "heron river depth\n");
  update();
  EXPECT_THAT(related_paths({.path = "a.txt", .line = 1}), Contains("storks.txt"));
  EXPECT_THAT(related_paths({.path = "a.txt", .line = 1}), Not(Contains("herons.txt")));
  EXPECT_THAT(related_paths({.path = "a.txt", .line = 601}), Contains("herons.txt"));
}

TEST_F(RelatedTest, APlaceMustBeInTheIndex) {
  write("a.txt", "heron");
  update();
  for (const RelatedRequest& request :
       {RelatedRequest{.path = "b.txt"}, RelatedRequest{.path = "a.txt", .line = 7},
        RelatedRequest{.path = "../project/a.txt"}}) {
    const Result<std::vector<Found>> found = find(request);
    ASSERT_FALSE(found) << request.path;
    EXPECT_EQ(found.error().code, Code::kNotFound);
  }
}

}  // namespace
}  // namespace slipstream
