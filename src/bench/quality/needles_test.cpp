#include "bench/quality/needles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bench/quality/name_words.h"
#include "bench/quality/plain_text.h"

namespace slipstream::quality {
namespace {

// A token is a word "hay".
std::string make_hay(std::size_t, std::size_t n_tokens) {
  std::string text;
  for (std::size_t i = 0; i < n_tokens; ++i) text += "hay ";
  return text;
}

std::size_t n_hay(std::string_view text) {
  std::size_t n = 0;
  for (auto at = text.find("hay"); at != text.npos; at = text.find("hay", at + 1)) ++n;
  return n;
}

TEST(Needles, EveryDepthAndPositionIsAskedForInEveryKind) {
  const std::vector<int> depths = {256, 1024};
  const std::vector<Needle> needles = make_needles(depths, 2, make_hay);
  EXPECT_EQ(needles.size(), 2 * depths.size() * kNeedlePositions.size() * kNeedleKinds.size());
  for (const std::string_view kind : kNeedleKinds) {
    for (const int depth : depths) {
      for (const double position : kNeedlePositions) {
        EXPECT_EQ(std::ranges::count_if(needles,
                                        [&](const Needle& needle) {
                                          return needle.kind == kind && needle.depth == depth &&
                                                 needle.position == position;
                                        }),
                  2);
      }
    }
  }
}

TEST(Needles, NamesStandWhereTheyShouldAndOnlyOnce) {
  for (const Needle& needle : make_needles(std::vector{1024}, 1, make_hay)) {
    const std::size_t at = needle.text.find(needle.name);
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(needle.text.find(needle.name, at + 1), std::string::npos);
    const auto all = static_cast<double>(n_hay(needle.text));
    const auto before = static_cast<double>(n_hay(std::string_view(needle.text).substr(0, at)));
    EXPECT_NEAR(before / all, needle.position, 0.01) << needle.kind;
    EXPECT_GT(all, 0.85 * needle.depth);
    EXPECT_LT(all, needle.depth);
  }
}

TEST(Needles, TheQuestionComesLastAndNamesOnlyTheFirst) {
  for (const Needle& needle : make_needles(std::vector{256}, 1, make_hay)) {
    const std::string first = needle.name.substr(0, needle.name.find(' '));
    const std::string question = needle.text.substr(needle.text.rfind('\n') + 1);
    EXPECT_TRUE(question.contains(first)) << question;
    EXPECT_FALSE(question.contains(needle.name)) << question;
    EXPECT_EQ(needle.kind == "paraphrased", question != "What is the full name of " + first + "?");
  }
}

TEST(Needles, AreTheSameEveryTime) {
  const auto first = make_needles(std::vector{256}, 2, make_hay);
  const auto again = make_needles(std::vector{256}, 2, make_hay);
  EXPECT_TRUE(std::ranges::equal(first, again, {}, &Needle::text, &Needle::text));
  std::set<std::string> texts;
  for (const Needle& needle : first) texts.insert(needle.text);
  EXPECT_EQ(texts.size(), first.size());
}

TEST(Needles, AnAnswerSaysTheWholeName) {
  EXPECT_TRUE(answers("It is Amber Lantern.", "amber lantern"));
  EXPECT_FALSE(answers("It is amber.", "amber lantern"));
  EXPECT_FALSE(answers("", "amber lantern"));
}

TEST(PlainText, HasNoWordThatNamesAreMadeOf) {
  const std::string text = plain_text(kPlainTextBytes);
  EXPECT_GE(text.size(), kPlainTextBytes);
  EXPECT_LT(text.size(), kPlainTextBytes + 4096);
  std::set<std::string> words;
  std::string word;
  for (const char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      words.insert(std::exchange(word, {}));
    }
  }
  EXPECT_GT(words.size(), 200U);
  for (const std::string_view name : kNameWords) EXPECT_FALSE(words.contains(std::string(name)));
}

TEST(PlainText, SentencesAreFilledIn) {
  const std::string text = plain_text(20000);
  EXPECT_EQ(text, plain_text(20000));
  // A single capital letter marks a place for a word.
  for (const char* place : {" P ", " D ", " T ", " L ", " W ", " R.", " N "}) {
    EXPECT_FALSE(text.contains(place)) << place;
  }
}

TEST(NameWords, AreAllDifferent) {
  const std::set<std::string_view> words(kNameWords.begin(), kNameWords.end());
  EXPECT_EQ(words.size(), kNameWords.size());
}

}  // namespace
}  // namespace slipstream::quality
