// Speculation with a draft model that takes the time it is told to take.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/speculation/fake_batch_drafter.h"
#include "engine/speculation/speculation.h"

namespace slipstream {
namespace {

// Several users of a machine with a draft model. What they say repeats nothing.
class ModelTrial {
 public:
  ModelTrial(int n_sequences, double row_seconds) : row_seconds_(row_seconds) {
    for (SeqId seq = 0; seq < n_sequences; ++seq) {
      std::vector<Token>& text = model.texts[seq];
      for (int i = 0; i < 20'000; ++i) text.push_back(seq * 100'000 + i);
    }
  }

  // The speed of all together with drafts, in speeds without.
  double run(std::size_t n_prompt, int n_steps, Speculates how = Speculates::kWhereItPays) {
    Speculation speculation({.speculates = how}, &model, [this] { return model.seconds; });
    std::vector<Speculation::Drafting> drafting(model.texts.size());
    std::vector<std::size_t> n(model.texts.size(), n_prompt);
    model.seconds = 0;
    for (int step = 0; step < n_steps; ++step) {
      std::vector<Speculation::Generating> sequences;
      for (std::size_t i = 0; i < n.size(); ++i) {
        const auto seq = static_cast<SeqId>(i);
        const std::span tokens = std::span(model.texts[seq]).first(n[i]);
        sequences.push_back(
            {.drafting = &drafting[i], .seq = seq, .tokens = tokens, .n_left = 100});
      }
      const std::vector<int> lengths = speculation.propose(sequences);
      std::vector<Speculation::Planned> planned;
      for (std::size_t i = 0; i < n.size(); ++i) {
        planned.push_back({.drafting = &drafting[i],
                           .seq = sequences[i].seq,
                           .tokens = sequences[i].tokens,
                           .n_drafted = lengths[i]});
      }
      speculation.draft(planned);
      verify(speculation, planned, n);
    }
    stats = speculation.stats();
    const auto n_before = static_cast<double>(n_prompt * n.size());
    const auto n_all = std::accumulate(n.begin(), n.end(), std::size_t{0});
    const double n_each = (static_cast<double>(n_all) - n_before) / static_cast<double>(n.size());
    return n_each / model.seconds;
  }

  FakeBatchDrafter model;
  SpeculationStats stats;

 private:
  // A step without drafts takes a second.
  void verify(Speculation& speculation, std::span<const Speculation::Planned> planned,
              std::vector<std::size_t>& n) {
    int n_drafted = 0;
    for (const Speculation::Planned& one : planned) n_drafted += one.n_drafted;
    const double took = 1 + row_seconds_ * n_drafted;
    model.seconds += took;
    speculation.observe_step(n_drafted, took);
    for (std::size_t i = 0; i < n.size(); ++i) {
      const std::span rest = std::span(model.texts[planned[i].seq]).subspan(n[i]);
      const std::span draft = planned[i].drafting->draft();
      int n_right = 0;
      while (n_right < planned[i].n_drafted &&
             draft[static_cast<std::size_t>(n_right)] == rest[static_cast<std::size_t>(n_right)]) {
        ++n_right;
      }
      speculation.count(planned[i].n_drafted, n_right);
      const auto n_new = static_cast<std::size_t>(n_right) + 1;
      speculation.observe_answer(*planned[i].drafting, rest.first(n_new));
      n[i] += n_new;
    }
  }

  double row_seconds_;
};

TEST(SpeculationWithAModel, GainsWhereItIsCheapAndMostlyRight) {
  ModelTrial trial(1, 0.03);
  trial.model.right = 0.7;
  trial.model.round_seconds = 0.1;
  trial.model.token_seconds = 0.005;
  // The best that there is: 3 to 4 tokens with 2.5 to 2.8 right ones in 1.4 to 1.5 seconds.
  EXPECT_GT(trial.run(500, 500), 1.6);
  EXPECT_GT(trial.stats.n_guessed, 500);
  EXPECT_GT(trial.stats.draft_model_seconds, 50);
}

TEST(SpeculationWithAModel, GainsForEightThatShareTheRounds) {
  ModelTrial trial(8, 0.01);
  trial.model.right = 0.7;
  trial.model.round_seconds = 0.15;
  trial.model.token_seconds = 0.005;
  EXPECT_GT(trial.run(500, 400), 1.3);
}

TEST(SpeculationWithAModel, LosesLittleWhereItIsDear) {
  for (const int n_sequences : {1, 8}) {
    ModelTrial trial(n_sequences, 0.2);
    trial.model.right = 0.7;
    trial.model.round_seconds = 0.3;
    trial.model.token_seconds = 0.005;
    EXPECT_GT(trial.run(500, 1500), 0.98) << n_sequences;
  }
}

TEST(SpeculationWithAModel, LosesLittleWhereItIsWrong) {
  for (const int n_sequences : {1, 8}) {
    ModelTrial trial(n_sequences, 0.03);
    trial.model.right = 0.1;
    trial.model.round_seconds = 0.1;
    trial.model.token_seconds = 0.002;
    EXPECT_GT(trial.run(500, 2000), 0.98) << n_sequences;
  }
}

// They are learned one after the other: the first tries for all what longer steps take.
TEST(SpeculationWithAModel, DoesNotLearnEightPromptsToSeeThatItDoesNotPay) {
  ModelTrial trial(8, 0.5);
  trial.model.round_seconds = 0.3;
  trial.model.token_seconds = 0.005;
  (void)trial.run(500, 400);
  EXPECT_GT(trial.model.n_learned, 0);
  EXPECT_LT(trial.model.n_learned, 1500);
}

TEST(SpeculationWithAModel, FindsInsteadOfGuessingWhatRepeatsItself) {
  ModelTrial trial(1, 0.01);
  trial.model.texts[0].clear();
  for (int i = 0; i < 8000; ++i) trial.model.texts[0].push_back(i % 300);
  trial.model.right = 0.7;
  trial.model.round_seconds = 0.2;
  EXPECT_GT(trial.run(900, 200), 5);
  EXPECT_LT(trial.stats.n_guessed, trial.stats.n_drafted / 10);
}

TEST(SpeculationWithAModel, GuessesWholeDraftsIfItAlwaysDoes) {
  ModelTrial trial(2, 1);
  (void)trial.run(400, 50, Speculates::kAlways);
  EXPECT_EQ(trial.stats.n_guessed, trial.stats.n_drafted);
  EXPECT_EQ(trial.stats.n_accepted, trial.stats.n_drafted);
  EXPECT_GT(trial.stats.n_drafted, 2 * 45 * SpeculationOptions::kDraftMax);
}

TEST(SpeculationWithAModel, GoesOnWithoutOneThatFails) {
  ModelTrial trial(1, 0);
  trial.model.fails = true;
  (void)trial.run(20 + ModelDrafts::kBehindMax / 2, 50, Speculates::kAlways);
  EXPECT_EQ(trial.stats.n_drafted, 0);
  EXPECT_GT(trial.model.n_learned, 0);
  EXPECT_LT(trial.model.n_learned, 40) << "once";
}

}  // namespace
}  // namespace slipstream
