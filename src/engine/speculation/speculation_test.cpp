#include "engine/speculation/speculation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace slipstream {
namespace {

// A machine and a request: steps take time, answers come from a text.
class Trial {
 public:
  Trial(std::vector<Token> text, double plain_seconds, double token_seconds)
      : text_(std::move(text)), plain_seconds_(plain_seconds), token_seconds_(token_seconds) {}

  // So many steps seem to take three times as long, as if another process had the machine.
  void disturb(double share, unsigned seed) {
    disturbed_ = share;
    random_.seed(seed);
  }

  // The speed with drafts, in speeds without, by what steps take undisturbed.
  double run(std::size_t n_prompt) {
    Speculation speculation({.speculates = Speculates::kWhereItPays});
    Speculation::Drafting drafting;
    double seconds = 0;
    std::size_t n = n_prompt;
    while (n + 16 < text_.size()) {
      const std::span tokens = std::span(text_).first(n);
      const Speculation::Generating one{.drafting = &drafting,
                                        .seq = 0,
                                        .tokens = tokens,
                                        .n_left = static_cast<int>(text_.size() - n - 1)};
      const int n_drafted = speculation.propose(std::span(&one, 1)).at(0);
      int n_accepted = 0;
      while (n_accepted < n_drafted && drafting.draft()[static_cast<std::size_t>(n_accepted)] ==
                                           text_[n + static_cast<std::size_t>(n_accepted)]) {
        ++n_accepted;
      }
      const double took = plain_seconds_ + token_seconds_ * n_drafted;
      seconds += took;
      const bool is_disturbed = std::uniform_real_distribution<>()(random_) < disturbed_;
      speculation.observe_step(n_drafted, is_disturbed ? 3 * took : took);
      speculation.count(n_drafted, n_accepted);
      const auto n_new = static_cast<std::size_t>(n_accepted) + 1;
      speculation.observe_answer(drafting, std::span(text_).subspan(n, n_new));
      n += n_new;
    }
    stats = speculation.stats();
    return static_cast<double>(n - n_prompt) * plain_seconds_ / seconds;
  }

  SpeculationStats stats;

 private:
  std::vector<Token> text_;
  double plain_seconds_;
  double token_seconds_;
  double disturbed_ = 0;
  std::mt19937 random_;
};

std::vector<Token> random_text(std::size_t n, Token n_different) {
  std::mt19937 random(7);
  std::vector<Token> text(n);
  for (Token& token : text) {
    token = static_cast<Token>(random() % static_cast<unsigned>(n_different));
  }
  return text;
}

// A file, and the same file with every 40th token changed.
std::vector<Token> edited_text() {
  std::vector<Token> text = random_text(2000, 500);
  for (std::size_t i = 0; i < 2000; ++i) {
    text.push_back(i % 40 == 39 ? 600 + static_cast<Token>(i) : text[i]);
  }
  return text;
}

TEST(Speculation, MakesEditingMuchFaster) {
  Trial trial(edited_text(), 1, 0.05);
  EXPECT_GT(trial.run(2000), 4);
  EXPECT_GT(trial.stats.n_accepted * 10, trial.stats.n_drafted * 7);
  EXPECT_EQ(std::accumulate(trial.stats.n_accepted_at.begin(), trial.stats.n_accepted_at.end(),
                            std::int64_t{0}),
            trial.stats.n_accepted);
}

TEST(Speculation, LosesNothingOnTextWithoutRepeats) {
  for (const Token n_different : {3, 20, 2000}) {
    Trial trial(random_text(4000, n_different), 1, 0.5);
    EXPECT_GT(trial.run(1000), 0.985) << n_different;
  }
}

TEST(Speculation, LosesNothingWhereEachDraftedTokenCostsAStep) {
  EXPECT_GT(Trial(edited_text(), 1, 1).run(2000), 0.985);
  EXPECT_GT(Trial(edited_text(), 1, 3).run(2000), 0.97) << "a look is dear";
}

// Three quarters say nothing new, and the last is an edit.
TEST(Speculation, NoticesThatDraftsAreRightAgain) {
  std::vector<Token> text = random_text(3000, 12);
  const std::vector<Token> edited = edited_text();
  text.insert(text.begin(), edited.begin(), edited.begin() + 2000);
  text.insert(text.end(), edited.begin() + 2000, edited.end());
  EXPECT_GT(Trial(text, 1, 0.05).run(5000), 4);
}

// An answer of 128 tokens, as short as what is learned of a machine in it: one slow step in twenty
// must not decide how the rest is drafted.
TEST(Speculation, SlowStepsNowAndThenDecideNothing) {
  std::vector<Token> text = edited_text();
  text.resize(2000 + 128 + 16);
  for (const double token_seconds : {0.05, 0.3}) {
    const double clean = Trial(text, 1, token_seconds).run(2000);
    constexpr int kRuns = 60;
    double sum = 0;
    std::vector<double> ratios;
    for (unsigned seed = 0; seed < kRuns; ++seed) {
      Trial trial(text, 1, token_seconds);
      trial.disturb(0.05, seed);
      ratios.push_back(trial.run(2000) / clean);
      sum += 1 / ratios.back();
    }
    std::ranges::sort(ratios);
    EXPECT_LT(sum / kRuns, 1.03) << "the mean time, " << token_seconds;
    EXPECT_GT(ratios[kRuns / 20], 0.9) << "all but a twentieth, " << token_seconds;
  }
}

TEST(Speculation, SlowStepsMakeNothingLoseWhereDraftsDoNotPay) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Trial trial(edited_text(), 1, 1);
    trial.disturb(0.05, seed);
    EXPECT_GT(trial.run(2000), 0.97) << seed;
  }
}

TEST(Speculation, DoesNothingWhenItIsOff) {
  Speculation speculation({});
  Speculation::Drafting drafting;
  const std::vector<Token> tokens(100, 5);
  const Speculation::Generating one{
      .drafting = &drafting, .seq = 0, .tokens = tokens, .n_left = 100};
  EXPECT_EQ(speculation.propose(std::span(&one, 1)), std::vector<int>{0});
  EXPECT_EQ(drafting.drafter, nullptr);
}

TEST(Speculation, NeverDraftsBeyondTheAnswersEndNorInAnAlmostEmptyCache) {
  Speculation speculation({.speculates = Speculates::kAlways, .n_draft_max = 8});
  const auto length = [&](std::size_t n_tokens, int n_left) {
    Speculation::Drafting drafting;
    const std::vector<Token> tokens(n_tokens, 5);
    const Speculation::Generating one{
        .drafting = &drafting, .seq = 0, .tokens = tokens, .n_left = n_left};
    return speculation.propose(std::span(&one, 1)).at(0);
  };
  EXPECT_EQ(length(100, 100), 8);
  EXPECT_EQ(length(100, 3), 3);
  EXPECT_EQ(length(100, 0), 0);
  EXPECT_EQ(length(33, 100), 8);
  EXPECT_EQ(length(32, 100), 0);
}

}  // namespace
}  // namespace slipstream
