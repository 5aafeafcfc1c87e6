#include "retrieval/dense/fusion.h"

#include <gmock/gmock.h>

namespace slipstream {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

QueryKind kind(const std::string& text) {
  Words words;
  return kind_of(read_query(text, words), text);
}

TEST(Fusion, KnowsWhatAQueryIs) {
  for (const char* query :
       {"parse_http_request", "parseHttpRequest", "where is parseHttpRequest called", "std::vector",
        "src/base", "\"no space left\"", "main()", "os.path",
        "what does node->next do in the list of free pages"}) {
    EXPECT_EQ(kind(query), QueryKind::kNames) << query;
  }
  for (const char* query : {"scheduler", "page cache eviction", "free memory"}) {
    EXPECT_EQ(kind(query), QueryKind::kKeywords) << query;
  }
  for (const char* query : {"how does the kernel free pages?",
                            "what similarity laws must be obeyed by aeroelastic models ."}) {
    EXPECT_EQ(kind(query), QueryKind::kProse) << query;
  }
}

TEST(Fusion, NamesAreFoundByTheirWords) { EXPECT_EQ(weight_of_meaning(QueryKind::kNames), 0); }

TEST(Fusion, ThePartsAreTheEnds) {
  const std::vector<PlaceScores> places = {{.lexical = 8, .cosine = 0.2F},
                                           {.lexical = 4, .cosine = 0.7F}};
  const std::vector<double> words = fuse(places, 0);
  EXPECT_THAT(words, ElementsAre(DoubleEq(1), DoubleEq(0.5)));
  const std::vector<double> meaning = fuse(places, 1);
  EXPECT_DOUBLE_EQ(meaning[1], 1);
  EXPECT_LT(meaning[0], 0.5);
}

TEST(Fusion, BothTogetherBeatOneAlone) {
  const std::vector<double> scores = fuse(std::vector<PlaceScores>{{.lexical = 10, .cosine = 0.1F},
                                                                   {.lexical = 9, .cosine = 0.6F},
                                                                   {.lexical = 0, .cosine = 0.65F}},
                                          0.4);
  EXPECT_GT(scores[1], scores[0]);
  EXPECT_GT(scores[1], scores[2]);
}

TEST(Fusion, WithoutAVectorWordsSpeakForAPlace) {
  const std::vector<double> scores =
      fuse(std::vector<PlaceScores>{{.lexical = 10}, {.lexical = 5, .cosine = 0.5F}}, 0.4);
  EXPECT_DOUBLE_EQ(scores[0], 1);
  EXPECT_LT(scores[1], 1);
}

TEST(Fusion, NothingToCompareIsNoDivision) {
  EXPECT_THAT(fuse({}, 0.5), ElementsAre());
  EXPECT_THAT(fuse(std::vector<PlaceScores>{{.lexical = 0, .cosine = -1.0F}}, 0.5),
              ElementsAre(0.0));
}

}  // namespace
}  // namespace slipstream
