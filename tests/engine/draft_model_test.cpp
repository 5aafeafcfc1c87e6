// A draft model beside a real one: what it guesses changes no answer, and whatever happens to it or to
// a request, the others go on and its cells come back.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>

#include "drafted_answers.h"
#include "engine/engine.h"

namespace slipstream {
namespace {

class RunnerWithDrafts {
 public:
  RunnerWithDrafts(int n_sequences, const DraftOnNeedles& draft, int n_cells = 16384,
                   const SpeculationOptions& speculation = kAlways)
      : engine("f16", n_cells, options_with(speculation, n_sequences), SLIPSTREAM_NEEDLE_MODEL, {},
               draft) {
    engine.runner().set_drafters([] { return std::make_unique<FindsNothing>(); });
  }
  [[nodiscard]] SpeculationStats stats() { return engine.runner().stats().speculation; }

  RunnerOnNeedles engine;
};

std::vector<Outcome> plain_answers(int n_sequences, int n_tokens, int n_cells = 16384) {
  RunnerOnNeedles engine("f16", n_cells, options_with({}, n_sequences));
  return run_behind_prompts(engine, long_requests(engine.vocabulary(), n_sequences, n_tokens));
}

std::string this_model() { return SLIPSTREAM_NEEDLE_MODEL; }
// Random weights with the same vocabulary.
std::string another_model() { return path_of("llama"); }

TEST(DraftModel, IsRightIfItIsTheSameModel) {
  for (const int n_sequences : {1, 8}) {
    for (const std::string kv : {"f16", "turbo8"}) {
      const std::vector<Outcome> plain = plain_answers(n_sequences, n_tokens_each());
      RunnerWithDrafts with(n_sequences, {.path = this_model(), .kv = kv});
      const std::vector<Outcome> drafted = run_behind_prompts(
          with.engine, long_requests(with.engine.vocabulary(), n_sequences, n_tokens_each()));
      EXPECT_GE(n_same(plain, drafted),
                static_cast<std::size_t>(n_tokens_each() * n_sequences * 9 / 10));
      const SpeculationStats stats = with.stats();
      EXPECT_GT(stats.n_accepted * 100, stats.n_drafted * 95) << kv;
      EXPECT_GT(stats.n_drafted, n_sequences * n_tokens_each() / 2);
      EXPECT_EQ(stats.n_guessed, stats.n_drafted);
      EXPECT_GT(stats.draft_model_seconds, 0);
      EXPECT_EQ(with.engine.draft_model().n_cells_used(), 0) << "all have ended";
    }
  }
}

TEST(DraftModel, ChangesNoAnswerIfItIsWrong) {
  for (const int n_sequences : {1, 8}) {
    const std::vector<Outcome> plain = plain_answers(n_sequences, n_tokens_each());
    for (const std::string kv : {"f16", "turbo4"}) {
      RunnerWithDrafts with(n_sequences, {.path = another_model(), .kv = kv});
      const std::vector<Outcome> drafted = run_behind_prompts(
          with.engine, long_requests(with.engine.vocabulary(), n_sequences, n_tokens_each()));
      EXPECT_GE(n_same(plain, drafted),
                static_cast<std::size_t>(n_tokens_each() * n_sequences * 9 / 10));
      EXPECT_LT(with.stats().n_accepted, n_sequences * n_tokens_each() / 10);
      EXPECT_GT(with.stats().n_drafted, 2 * n_sequences * n_tokens_each());
    }
  }
}

// What it computed for a token that was refused must not be part of what it says later: then it would
// be wrong, though it is the same model.
TEST(DraftModel, GoesOnFromTheAnswerAndNotFromItsGuesses) {
  RunnerWithDrafts with(2, {.path = this_model()});
  int n = 0;
  with.engine.draft_model().set_say(
      [&n](std::span<const Token> /*tokens*/, std::span<const Token> /*guessed*/, Token said) {
        return ++n % 4 == 0 ? (said + 7) % 2000 : said;
      });
  const std::vector<Outcome> plain = plain_answers(2, 80);
  EXPECT_GE(n_same(plain,
                   run_behind_prompts(with.engine, long_requests(with.engine.vocabulary(), 2, 80))),
            140U);
  // Of five tokens one is changed, so that two of them are right on average.
  EXPECT_GT(with.stats().n_accepted * 100, with.stats().n_drafted * 30);
}

TEST(DraftModel, AndWhatIsFoundTakeTurns) {
  const auto answers = [](const DraftOnNeedles& draft, const SpeculationOptions& speculation,
                          SpeculationStats* stats) {
    RunnerOnNeedles engine("f16", 8192, options_with(speculation, 4), SLIPSTREAM_NEEDLE_MODEL, {},
                           draft);
    std::vector<GenerateRequest> requests = long_requests(engine.vocabulary(), 4, 150);
    requests[1].sampling.grammar = R"(root ::= ("the " | "name ")+)";
    auto outcomes = run_behind_prompts(engine, requests);
    *stats = engine.runner().stats().speculation;
    return outcomes;
  };
  SpeculationStats stats;
  const std::vector<Outcome> plain = answers({}, {}, &stats);
  const std::vector<Outcome> both = answers({.path = this_model()}, kAlways, &stats);
  EXPECT_GE(n_same(plain, both), 500U);
  EXPECT_GT(stats.n_guessed, 50);
  EXPECT_GT(stats.n_drafted - stats.n_guessed, 50);
  // What pays here is a matter of the machine, what is said is not.
  const std::vector<Outcome> where_it_pays =
      answers({.path = this_model()}, {.speculates = Speculates::kWhereItPays}, &stats);
  EXPECT_GE(n_same(plain, where_it_pays), 500U);
}

TEST(DraftModel, ItsCellsComeBackFromSequencesThatGiveWay) {
  const auto requests = [](const RunnerOnNeedles& engine) {
    return long_requests(engine.vocabulary(), 3, 300);
  };
  RunnerOnNeedles plain("f16", 4096, options_with({}, 2));
  RunnerWithDrafts with(2, {.path = this_model()}, 768);
  const std::vector<Outcome> drafted = run_all(with.engine, requests(with.engine));
  EXPECT_GT(with.engine.runner().stats().n_preempted, 0);
  EXPECT_GT(n_same(run_all(plain, requests(plain)), drafted), 600U);
  EXPECT_GT(with.stats().n_guessed, 0);
  EXPECT_EQ(with.engine.draft_model().n_cells_used(), 0);
}

TEST(DraftModel, ItsCellsComeBackFromRequestsThatAreCancelled) {
  RunnerWithDrafts with(2, {.path = this_model()});
  const auto requests = long_requests(with.engine.vocabulary(), 2, 400);
  const RequestId first = with.engine.ask(requests[0]);
  const RequestId second = with.engine.ask(requests[1]);
  while (with.engine.outcomes[first].tokens.size() < 20) (void)with.engine.runner().step();
  const int n_both = with.engine.draft_model().n_cells_used();
  EXPECT_GT(n_both, 200);
  with.engine.runner().cancel(first);
  EXPECT_LT(with.engine.draft_model().n_cells_used(), n_both - 50);
  EXPECT_GT(with.engine.draft_model().n_cells_used(), 50) << "the other's";
  with.engine.run();
  EXPECT_EQ(with.engine.outcomes[second].ending->reason, FinishReason::kLength);
  EXPECT_EQ(with.engine.draft_model().n_cells_used(), 0);
}

TEST(DraftModel, SequencesThatDoNotFitIntoItsContextGoWithout) {
  RunnerWithDrafts with(2, {.path = this_model(), .n_cells = 512});
  const std::string text = haystack();
  const auto request = [&](std::size_t n_chars) {
    return greedy_request(*with.engine.vocabulary().tokenize(text.substr(0, n_chars), false, true),
                          40);
  };
  const GenerateRequest small = request(400);
  const GenerateRequest large = request(4000);
  ASSERT_LT(small.prompt.size(), 300U);
  ASSERT_GT(large.prompt.size(), 600U);
  const std::vector<Outcome> outcomes = run_behind_prompts(with.engine, {small, large});
  EXPECT_GT(outcomes[0].ending->usage.n_drafted, 20);
  EXPECT_EQ(outcomes[1].ending->usage.n_drafted, 0);
  EXPECT_EQ(outcomes[1].ending->reason, FinishReason::kLength);

  // One that grows out of it stops.
  GenerateRequest growing = request(900);
  growing.n_tokens_max = 600;
  const Outcome grown = run_all(with.engine, {growing}).front();
  EXPECT_GT(grown.ending->usage.n_drafted, 20);
  EXPECT_LT(grown.ending->usage.n_drafted, 520);
  EXPECT_EQ(grown.tokens.size(), 600U);
  EXPECT_EQ(with.engine.draft_model().n_cells_used(), 0);
}

TEST(DraftModel, ThatFailsEndsNoRequest) {
  for (const bool throws : {false, true}) {
    RunnerWithDrafts with(4, {.path = this_model()});
    int n_batches = 0;
    with.engine.draft_model().set_fault([&](const llama_batch& /*batch*/) {
      if (++n_batches != 30) return 0;
      if (throws) throw std::bad_alloc();
      return -3;
    });
    const std::vector<Outcome> plain = plain_answers(4, 60);
    const auto requests = long_requests(with.engine.vocabulary(), 4, 60);
    const std::vector<Outcome> outcomes = run_behind_prompts(with.engine, requests);
    EXPECT_GT(n_same(plain, outcomes), 200U);
    EXPECT_EQ(n_batches, 30) << "those in the batch are not tried again";
    EXPECT_EQ(with.engine.runner().stats().n_failed_batches, 0);
    EXPECT_EQ(with.engine.draft_model().n_cells_used(), 0);
    const std::int64_t n_guessed = with.stats().n_guessed;
    EXPECT_GT(n_guessed, 0) << "before";
    (void)run_all(with.engine, requests);
    EXPECT_GT(with.stats().n_guessed, n_guessed) << "for requests that come later";
  }
}

// A part of a batch may be computed. A batch of the model itself that fails does it no harm.
TEST(DraftModel, IsAskedAgainWhereTheModelFailed) {
  RunnerWithDrafts with(2, {.path = this_model()});
  int n_failed = 0;
  with.engine.runner().set_fault([&](const llama_batch& batch) {
    const bool fails = batch.n_tokens > 2 && batch.n_tokens <= 12 && n_failed < 3;
    n_failed += fails ? 1 : 0;
    return fails ? -3 : 0;
  });
  const std::vector<Outcome> plain = plain_answers(2, 60);
  EXPECT_GT(n_same(plain,
                   run_behind_prompts(with.engine, long_requests(with.engine.vocabulary(), 2, 60))),
            100U);
  EXPECT_EQ(n_failed, 3);
  EXPECT_GT(with.stats().n_accepted, 50);
}

Result<Model> load(const std::string& path, int n_sequences = 2) {
  return Model::load(options_of(path, "f16", 1024, n_sequences));
}

// The needle model with another letter in one of its tokens.
std::string with_another_token() {
  std::ifstream in(SLIPSTREAM_NEEDLE_MODEL, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::size_t at = bytes.find("subroutine");
  EXPECT_NE(at, std::string::npos);
  bytes[at] = 'X';
  const std::string path =
      testing::TempDir() + "another_token." + std::to_string(::getpid()) + ".gguf";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(DraftModel, WithOtherTokensIsRefused) {
  const std::string path = with_another_token();
  const auto engine =
      Engine::start(*load(this_model(), RunnerOptions{.n_sequences_max = 2}.n_sequence_ids()),
                    {.runner = options_with(kAlways, 2)}, *load(path));
  std::filesystem::remove(path);
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().code, Code::kUnsupported);
  EXPECT_TRUE(engine.error().message.contains(path)) << engine.error().message;
  EXPECT_TRUE(engine.error().message.contains("Xubroutine' and not '")) << engine.error().message;
}

TEST(DraftModel, WithRecurrentStateIsRefused) {
  const Result<Model> model = load(this_model());
  const auto draft = DraftModel::create(*load(path_of("qwen35")), *model);
  ASSERT_FALSE(draft.has_value());
  EXPECT_EQ(draft.error().code, Code::kUnsupported);
  EXPECT_TRUE(draft.error().message.contains("recurrent state")) << draft.error().message;
}

TEST(DraftModel, IsNotAskedForAModelWithRecurrentState) {
  RunnerOptions options = options_with(kAlways, 2);
  const auto engine = Engine::start(*load(path_of("qwen35"), options.n_sequence_ids()),
                                    {.runner = options}, *load(this_model()));
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  EXPECT_EQ((*engine)->batch_drafter(), "-");
  EXPECT_FALSE((*engine)->speculates());
}

}  // namespace
}  // namespace slipstream
