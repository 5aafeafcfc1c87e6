#include "bench/quality/needles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

const std::vector<std::string> kAllKinds(kNeedleKinds.begin(), kNeedleKinds.end());

std::vector<Needle> make_all(const std::vector<int>& depths, int n_texts) {
  return make_needles(kAllKinds, depths, n_texts, make_hay);
}

std::string text_before_question(const Needle& needle) {
  return needle.text.substr(0, needle.text.rfind('\n'));
}

TEST(Needles, EveryDepthAndPositionIsAskedForInEveryKind) {
  const std::vector<int> depths = {512, 1024};
  const std::vector<Needle> needles = make_all(depths, 2);
  // Both of a pair that is alike are asked for.
  EXPECT_EQ(needles.size(),
            2 * depths.size() * kNeedlePositions.size() * (kNeedleKinds.size() + 1));
  for (const std::string_view kind : kNeedleKinds) {
    for (const int depth : depths) {
      for (const double position : kNeedlePositions) {
        EXPECT_EQ(std::ranges::count_if(needles,
                                        [&](const Needle& needle) {
                                          return needle.kind == kind && needle.depth == depth &&
                                                 needle.position == position;
                                        }),
                  kind == "alike" ? 4 : 2);
      }
    }
  }
}

TEST(Needles, NamesStandWhereTheyShouldAndOnlyOnce) {
  for (const Needle& needle : make_all({4096}, 1)) {
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
  for (const Needle& needle : make_all({512}, 1)) {
    const std::string first = needle.name.substr(0, needle.name.find(' '));
    const std::string question = needle.text.substr(needle.text.rfind('\n') + 1);
    EXPECT_TRUE(question.contains(first)) << question;
    EXPECT_FALSE(question.contains(needle.name)) << question;
    EXPECT_EQ(needle.kind == "paraphrased", question != "What is the full name of " + first + "?");
  }
}

TEST(Needles, OnlySingleOnesHaveATextOfTheirOwn) {
  const auto n_read = [](const std::vector<std::string>& kinds) {
    int n = 0;
    std::string last;
    for (const Needle& needle : make_needles(kinds, std::vector{512, 1024}, 3, make_hay)) {
      if (text_before_question(needle) != last) ++n;
      last = text_before_question(needle);
    }
    return n;
  };
  EXPECT_EQ(n_read({"several", "paraphrased", "alike"}), 2 * 3);
  EXPECT_EQ(n_read({"single"}), 2 * 3 * 5);
  EXPECT_EQ(n_read(kAllKinds), 2 * n_needle_texts_read(kAllKinds, 3));
}

TEST(Needles, OnesThatAreAlikeBeginAlikeAndStandFarApart) {
  std::vector<Needle> alike =
      make_needles(std::vector<std::string>{"alike"}, std::vector{512}, 1, make_hay);
  ASSERT_EQ(alike.size(), 10U);
  std::ranges::sort(alike, {}, &Needle::name);
  std::set<std::string> words;
  for (std::size_t i = 0; i < alike.size(); i += 2) {
    const Needle& one = alike[i];
    const Needle& other = alike[i + 1];
    EXPECT_EQ(one.name.substr(0, 3), other.name.substr(0, 3));
    EXPECT_GE(std::abs(one.position - other.position), 0.5);
    EXPECT_TRUE(one.text.contains(other.name));
    for (const std::string& name : {one.name, other.name}) {
      words.insert(name.substr(0, name.find(' ')));
      words.insert(name.substr(name.find(' ') + 1));
    }
  }
  EXPECT_EQ(words.size(), 20U);
}

TEST(Needles, HaveRoomAtTheSmallestDepth) {
  for (const std::vector<std::string>& kinds :
       {std::vector<std::string>{"single"}, std::vector<std::string>{"several"}, kAllKinds}) {
    const int depth = needle_depth_min(kinds);
    for (const Needle& needle : make_needles(kinds, std::vector{depth}, 1, make_hay)) {
      EXPECT_GT(n_hay(needle.text), 0U) << needle.kind;
    }
  }
}

TEST(Needles, AreTheSameEveryTime) {
  const auto first = make_all({512}, 2);
  const auto again = make_all({512}, 2);
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

TEST(NameWords, ThoseAlikeAreWordsThatBeginAlike) {
  for (const auto& [one, other] : kWordsAlike) {
    EXPECT_TRUE(std::ranges::contains(kNameWords, one)) << one;
    EXPECT_TRUE(std::ranges::contains(kNameWords, other)) << other;
    EXPECT_EQ(one.substr(0, 3), other.substr(0, 3));
  }
}

TEST(NameWords, AreAllDifferent) {
  const std::set<std::string_view> words(kNameWords.begin(), kNameWords.end());
  EXPECT_EQ(words.size(), kNameWords.size());
}

}  // namespace
}  // namespace slipstream::quality
