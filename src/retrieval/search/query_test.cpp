#include "retrieval/search/query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

using testing::ElementsAre;

Query query(std::string_view text) {
  Words words;
  return read_query(text, words);
}

std::vector<std::string> terms(std::string_view text) {
  std::vector<std::string> found;
  for (const QueryTerm& term : query(text).terms) found.push_back(term.text);
  return found;
}

TEST(Query, WordsThatOnlyAskAreLeftOut) {
  EXPECT_THAT(terms("Where does the scheduler pick the next task?"),
              ElementsAre("schedul", "pick", "next", "task"));
  EXPECT_THAT(terms("who is it"), ElementsAre("who", "is", "it")) << "there is nothing else";
}

TEST(Query, NamesAreSymbolsAndTerms) {
  const Query found = query("std::string_view::substr in read_query()");
  EXPECT_THAT(found.names, ElementsAre("std", "string_view", "substr", "read_query"));
  EXPECT_EQ(found.terms[1].text, "stringview");
  EXPECT_TRUE(found.terms[1].is_name);
  EXPECT_TRUE(found.terms[2].is_part);
}

TEST(Query, QuotedWordsAreAPhrase) {
  EXPECT_THAT(terms("\"no space left\" error"),
              ElementsAre("no space left", "no", "space", "left", "error"));
  EXPECT_THAT(terms("\"unclosed quote"), ElementsAre("unclos quot", "unclos", "quot"));
  EXPECT_THAT(terms("\"\" word"), ElementsAre("word"));
}

TEST(Query, EachTermCountsOnce) { EXPECT_THAT(terms("read reads reading"), ElementsAre("read")); }

TEST(Query, LongOnesAreCut) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "word" + std::to_string(i) + " ";
  const Query found = query(text);
  EXPECT_EQ(found.terms.size(), kRetrievalLimits.query_terms_max);
  EXPECT_TRUE(found.was_cut);
  EXPECT_TRUE(query(std::string(1 << 20, 'x')).was_cut);
}

}  // namespace
}  // namespace slipstream
