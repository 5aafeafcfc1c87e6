#include "engine/speculation/model_drafts.h"

#include <gtest/gtest.h>

#include "engine/speculation/fake_batch_drafter.h"

namespace slipstream {
namespace {

class ModelDraftsTest : public testing::Test {
 protected:
  ModelDraftsTest() : text_(2000) {
    for (std::size_t i = 0; i < text_.size(); ++i) text_[i] = static_cast<Token>(i % 97);
    model_.texts[0] = model_.texts[1] = text_;
    model_.token_seconds = 0.001;
    model_.round_seconds = 0.01;
  }
  [[nodiscard]] std::span<const Token> first(std::size_t n) const {
    return std::span(text_).first(n);
  }
  // Steps of this time until the first n tokens are learned.
  int steps_to_learn(std::size_t n, double step_seconds) {
    for (int n_steps = 0;; ++n_steps) {
      const int n_missing = drafts_.offer(request_, 0, first(n), 5).n_missing;
      if (n_missing <= ModelDrafts::kBehindMax) return n_steps;
      const ModelDrafts::Wish wish{
          .request = &request_, .seq = 0, .tokens = first(n), .n_missing = n_missing};
      drafts_.learn(std::span(&wish, 1), step_seconds);
    }
  }

  std::vector<Token> text_;
  FakeBatchDrafter model_;
  ModelDrafts drafts_{model_, [this] { return model_.seconds; }};
  ModelDrafts::OfRequest request_;
};

TEST_F(ModelDraftsTest, OffersWhatItTakesAndHowLikelyItIs) {
  const ModelDrafts::Offer offer = drafts_.offer(request_, 0, first(100), 3);
  EXPECT_EQ(offer.n_missing, 100);
  EXPECT_EQ(offer.chances, Trust().chances(3));
  EXPECT_TRUE(drafts_.offer(request_, 0, first(100), 0).chances.empty());
}

TEST_F(ModelDraftsTest, LearningTakesAShareOfTheStep) {
  constexpr double kStep = 0.1;
  EXPECT_GT(steps_to_learn(1600, kStep), 30);
  EXPECT_LT(steps_to_learn(1600, kStep), 150);
  EXPECT_NEAR(drafts_.seconds_spent(), 1.6, 0.1);
  EXPECT_EQ(drafts_.n_guessed(), 0);
}

TEST_F(ModelDraftsTest, LearnsInWholeBatchesWhereStepsAreNotTimed) {
  EXPECT_EQ(steps_to_learn(1600, 0), 7);
}

TEST_F(ModelDraftsTest, GuessesForAllAtOnce) {
  ModelDrafts::OfRequest other;
  (void)drafts_.offer(request_, 0, first(50), 4);
  (void)drafts_.offer(other, 1, first(60), 4);
  const ModelDrafts::Wish wishes[] = {{.request = &request_, .seq = 0, .tokens = first(50), .n = 3},
                                      {.request = &other, .seq = 1, .tokens = first(60), .n = 4}};
  drafts_.make(wishes);
  EXPECT_EQ(request_.tokens, std::vector(text_.begin() + 50, text_.begin() + 53));
  EXPECT_EQ(other.tokens, std::vector(text_.begin() + 60, text_.begin() + 64));
  EXPECT_EQ(model_.n_calls, 1);
  EXPECT_EQ(drafts_.n_guessed(), 7);
  EXPECT_NEAR(drafts_.seconds(2, 4, 1), 0.04, 1e-9) << "as was measured";
  drafts_.observe(request_, first(53).last(2));  // one was right, perhaps
  EXPECT_TRUE(request_.tokens.empty());
}

TEST_F(ModelDraftsTest, AFailureEndsItForTheRequestsConcerned) {
  (void)drafts_.offer(request_, 0, first(50), 4);
  model_.fails = true;
  const ModelDrafts::Wish wish{.request = &request_, .seq = 0, .tokens = first(50), .n = 3};
  drafts_.make(std::span(&wish, 1));
  model_.fails = false;
  EXPECT_TRUE(request_.tokens.empty());
  EXPECT_TRUE(drafts_.offer(request_, 0, first(50), 4).chances.empty());
  ModelDrafts::OfRequest other;
  EXPECT_FALSE(drafts_.offer(other, 1, first(50), 4).chances.empty());
}

TEST_F(ModelDraftsTest, AFailureToLearnEndsItToo) {
  model_.fails = true;
  const ModelDrafts::Wish wish{
      .request = &request_, .seq = 0, .tokens = first(500), .n_missing = 500};
  drafts_.learn(std::span(&wish, 1), 0);
  EXPECT_TRUE(request_.has_failed);
}

TEST_F(ModelDraftsTest, ASequenceThatIsTooLongGivesItsCellsBack) {
  (void)steps_to_learn(400, 0);
  EXPECT_TRUE(model_.held.contains(0));
  model_.n_tokens_max = 300;
  EXPECT_TRUE(drafts_.offer(request_, 0, first(400), 4).chances.empty());
  EXPECT_FALSE(model_.held.contains(0));
}

TEST_F(ModelDraftsTest, ANewRequestIsTrustedAsOthersWere) {
  model_.right = 0;
  for (int i = 0; i < 20; ++i) {
    (void)drafts_.offer(request_, 0, first(50), 4);
    const ModelDrafts::Wish wish{.request = &request_, .seq = 0, .tokens = first(50), .n = 1};
    drafts_.make(std::span(&wish, 1));
    drafts_.observe(request_, first(51).last(1));
  }
  ModelDrafts::OfRequest other;
  EXPECT_LT(drafts_.offer(other, 1, first(50), 1).chances.at(0), 0.3);
}

}  // namespace
}  // namespace slipstream
