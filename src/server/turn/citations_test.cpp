#include "server/turn/citations.h"

#include <gtest/gtest.h>

#include <string>

namespace slipstream {
namespace {

// Three places; the last two were shown for this answer.
std::vector<Citation> citations_in(const std::vector<std::string>& parts) {
  CitationFinder finder(std::make_shared<ShownSources>(
      ShownSources{.all = {{.path = "one"}, {.path = "two"}, {.path = "three"}}, .n_before = 1}));
  for (const std::string& part : parts) finder.push(part);
  return finder.finish();
}

std::string shown(const std::vector<Citation>& citations) {
  std::string text;
  for (const Citation& one : citations) {
    text += one.source.path + " " + std::to_string(one.start) + "-" + std::to_string(one.end) + ";";
  }
  return text;
}

TEST(Citations, AreNumbersInBrackets) {
  EXPECT_EQ(shown(citations_in({"It is so [1]. And [3]"})), "one 9-12;three 18-21;two 0-0;");
  EXPECT_EQ(shown(citations_in({"So [2, 3]."})), "two 3-9;three 3-9;");
}

TEST(Citations, AreFoundAcrossParts) {
  EXPECT_EQ(shown(citations_in({"so [", "2", "] or", " [3", "]"})), "two 3-6;three 10-13;");
}

TEST(Citations, CountCharactersAndNotBytes) {
  EXPECT_EQ(shown(citations_in({"Ä\xE2\x82", "\xAC [2] [3]"})), "two 3-6;three 7-10;");
}

TEST(Citations, WhatNamesNoPlaceIsText) {
  for (const std::string text :
       {"", "[4] [0] [] [x] [1", "a[i] [2x] [-2]", "[99999999999999999999]"}) {
    EXPECT_EQ(shown(citations_in({text})), "two 0-0;three 0-0;") << text;
  }
}

TEST(Citations, HaveALimit) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "[1]";
  EXPECT_EQ(citations_in({text, "[", std::string(100'000, ','), "1]"}).size(), 256U + 2U);
}

}  // namespace
}  // namespace slipstream
