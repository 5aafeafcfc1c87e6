#include "retrieval/text/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/utf8.h"
#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> terms(std::string_view text) { return Words().terms(text); }

TEST(Words, AnIdentifierIsOneTermAndItsPartsAreTerms) {
  EXPECT_THAT(terms("parseHTTPRequest"),
              ElementsAre("parsehttprequest", "pars", "http", "request"));
  EXPECT_THAT(terms("max_body_bytes"), ElementsAre("maxbodybytes", "max", "bodi", "byte"));
  EXPECT_THAT(terms("MAX_BODY_BYTES"), ElementsAre("maxbodybytes", "max", "bodi", "byte"));
  EXPECT_THAT(terms("utf8Decoder"), ElementsAre("utf8decoder", "utf8", "decod"));
  EXPECT_THAT(terms("XMLHttpRequest2"), ElementsAre("xmlhttprequest2", "xml", "http", "request2"));
  EXPECT_THAT(terms("__init__"), ElementsAre("init"));
}

TEST(Words, StylesOfOneNameMeet) {
  const std::string name = terms("parse_request").front();
  EXPECT_EQ(terms("parseRequest").front(), name);
  EXPECT_EQ(terms("ParseRequest").front(), name);
  EXPECT_EQ(terms("PARSE_REQUEST").front(), name);
}

TEST(Words, WordsOfProseAreStems) {
  EXPECT_THAT(terms("The schedulers were scheduling tasks."),
              ElementsAre("the", "schedul", "were", "schedul", "task"));
  EXPECT_THAT(terms("don't"), ElementsAre("don", "t"));
}

TEST(Words, WhatIsNoLetterSeparates) {
  EXPECT_THAT(terms("a.b->c::d(e)[0x1F]"), ElementsAre("a", "b", "c", "d", "e", "0x1f"));
  EXPECT_THAT(terms(""), IsEmpty());
  EXPECT_THAT(terms("___ -- !!"), IsEmpty());
}

TEST(Words, LettersOfOtherScriptsAreFolded) {
  EXPECT_EQ(terms("Café"), terms("cafe"));
  EXPECT_EQ(terms("CAFE\u0301"), terms("cafe"));  // a mark of its own
  EXPECT_EQ(terms("ÜBER"), terms("uber"));
  EXPECT_EQ(terms("Straße"), terms("STRASSE"));
  EXPECT_EQ(terms("Привет"), terms("привет"));
}

TEST(Words, WordsWithoutSpacesBecomePairs) {
  EXPECT_THAT(terms("全文検索"), ElementsAre("全文", "文検", "検索"));
  EXPECT_THAT(terms("漢"), ElementsAre("漢"));
  EXPECT_THAT(terms("use全文now"), ElementsAre("use", "全文", "now"));
}

TEST(Words, ALetterThatIsWrittenWithSpacesIsOneTerm) {
  EXPECT_THAT(terms("\u037A"), IsEmpty());
  for (const std::string& term : terms("\uFDFA")) EXPECT_FALSE(term.contains(' ')) << term;
}

TEST(Words, PlacesAreThoseOfTheText) {
  const std::string text = "x = fooBar;";
  std::vector<std::string> places;
  Words().cut(text, [&](const Term& term) {
    places.push_back(text.substr(term.begin, term.end - term.begin));
    return true;
  });
  EXPECT_THAT(places, ElementsAre("x", "fooBar", "foo", "Bar"));
}

TEST(Words, LongOnesAreLeftOut) {
  const std::string longest(kRetrievalLimits.term_bytes_max, 'x');
  EXPECT_THAT(terms(longest), ElementsAre(longest));
  EXPECT_THAT(terms(longest + "x"), IsEmpty());
}

TEST(Words, OfUnwantedTermsOnlyThePlaceIsTold) {
  std::vector<std::string> found;
  Words().cut("parseHTTPRequest sleeping cats", Words::FirstBytes().set('s').set('r'),
              [&](const Term& term) {
                found.emplace_back(term.text);
                return true;
              });
  EXPECT_THAT(found, ElementsAre("", "", "", "request", "sleep", ""));
}

TEST(Words, TheCallbackCanEndIt) {
  int n = 0;
  EXPECT_FALSE(Words().cut("one two three", [&](const Term&) { return ++n < 2; }));
  EXPECT_EQ(n, 2);
}

RC_GTEST_PROP(Words, AnyBytesGiveTermsInTheirPlaces, (const std::string& bytes)) {
  std::size_t begin = 0;
  Words().cut(bytes, [&](const Term& term) {
    RC_ASSERT(term.begin < term.end && term.end <= bytes.size());
    RC_ASSERT(term.begin >= begin);
    RC_ASSERT(!term.text.empty() && term.text.size() <= kRetrievalLimits.term_bytes_max);
    RC_ASSERT(is_utf8(term.text));
    RC_ASSERT(!term.text.contains(' ') && !term.text.contains('"'));
    begin = term.begin;
    return true;
  });
}

}  // namespace
}  // namespace slipstream
