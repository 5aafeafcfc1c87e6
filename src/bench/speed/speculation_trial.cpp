#include "bench/speed/speculation_trial.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "base/format.h"
#include "bench/report/text_table.h"
#include "engine/runner.h"

namespace slipstream::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kEditEvery = 24;
constexpr int kPrefixes = 8;
constexpr int kBehind = 64;  // cells to spare for each sequence

enum class AnswerKind { kEdit, kNew };

RunnerOptions runner_options(int n_sequences, Speculates speculates) {
  return {.n_sequences_max = n_sequences,
          .n_prefixes_max = n_sequences + kPrefixes,
          .speculation = {.speculates = speculates}};
}

std::string grammar_of(std::span<const Token> answer) {
  std::string grammar = "root ::=";
  for (const Token token : answer) grammar += format_text(" <[{}]>", token);
  return grammar;
}

// How fast one arm generated.
struct DraftedSpeed {
  double tokens_per_s = 0;
  std::int64_t n_generated = 0;
  SpeculationStats drafts = {};
};

class SpeculationTrial {
 public:
  SpeculationTrial(Model& model, const Vocabulary& vocabulary, const SpeculationTask& task,
                   BatchDrafter* drafter)
      : model_(model), vocabulary_(vocabulary), task_(task), drafter_(drafter) {
    if (drafter_ != nullptr) {
      drafter_->set_say(
          [this](std::span<const Token> tokens, std::span<const Token> guessed, Token said) {
            const bool is_right = chance_(random_) < task_.draft_acceptance;
            return replaced_guess(texts_, tokens, guessed, said, is_right);
          });
    }
    for (Token token = 0; token < vocabulary.n_tokens(); ++token) {
      if (!vocabulary.piece(token, false).empty() && !vocabulary.is_end(token)) {
        plain_tokens_.push_back(token);
      }
    }
  }

  Result<DraftedSpeed> run(AnswerKind kind, int n_sequences, int repeat, Speculates speculates) {
    llama_memory_clear(llama_get_memory(model_.context()), true);
    Runner runner(model_, vocabulary_, runner_options(n_sequences, speculates), nullptr, drafter_);
    error_.clear();
    texts_.clear();
    n_answering_ = n_ended_ = 0;
    for (int i = 0; i < n_sequences; ++i) {
      const auto seed = static_cast<unsigned>(repeat * 1000 + i);
      if (Result<void> asked = ask(runner, request(kind, seed)); !asked) {
        return std::unexpected(asked.error());
      }
    }
    // Prompts do not count: from when all answer to the last answer's end.
    while (n_answering_ < n_sequences && n_ended_ == 0 && runner.step()) {
    }
    const std::int64_t n_before = runner.stats().n_generated_tokens;
    const Clock::time_point started = Clock::now();
    while (runner.step()) {
    }
    const std::chrono::duration<double> took = Clock::now() - started;
    if (!error_.empty()) return fail(Code::kUnsupported, error_);
    const RunnerStats stats = runner.stats();
    const std::int64_t n_generated = stats.n_generated_tokens - n_before;
    return DraftedSpeed{.tokens_per_s = static_cast<double>(n_generated) / took.count(),
                        .n_generated = stats.n_generated_tokens,
                        .drafts = stats.speculation};
  }

 private:
  [[nodiscard]] Token any(std::mt19937& random) const {
    return plain_tokens_[random() % plain_tokens_.size()];
  }

  GenerateRequest request(AnswerKind kind, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Token> prompt;
    const std::size_t start = random() % task_.text.size();
    for (std::size_t i = 0; std::cmp_less(i, task_.n_prompt); ++i) {
      prompt.push_back(task_.text[(start + i) % task_.text.size()]);
    }
    std::vector<Token> answer;
    for (std::size_t i = 0; std::cmp_less(i, task_.n_tokens); ++i) {
      const bool is_copied = kind == AnswerKind::kEdit && i % kEditEvery != kEditEvery - 1;
      answer.push_back(is_copied ? prompt[i % prompt.size()] : any(random));
    }
    texts_.push_back(prompt);
    std::ranges::copy(answer, std::back_inserter(texts_.back()));
    GenerateRequest request{
        .prompt = std::move(prompt), .n_tokens_max = task_.n_tokens, .ignores_end = true};
    request.sampling.temperature = 0;
    request.sampling.grammar = grammar_of(answer);
    return request;
  }

  Result<void> ask(Runner& runner, GenerateRequest request) {
    Result<Sampler> sampler = Sampler::create(vocabulary_, request.sampling);
    if (!sampler) return std::unexpected(sampler.error());
    Result<TextStream> text = TextStream::create({});
    if (!text) return std::unexpected(text.error());
    const auto take = [this](const Event& event) {
      if (event.usage.n_generated == 1 && !event.ending) ++n_answering_;
      if (!event.ending) return;
      ++n_ended_;
      if (event.ending->reason == FinishReason::kFailed) error_ = event.ending->error;
    };
    return runner.add({.id = ++last_id_,
                       .request = std::move(request),
                       .sampler = std::move(*sampler),
                       .text = std::move(*text),
                       .listener = take});
  }

  Model& model_;
  const Vocabulary& vocabulary_;
  const SpeculationTask& task_;
  BatchDrafter* const drafter_;  // null: none
  std::mt19937 random_{17};
  std::uniform_real_distribution<double> chance_{0, 1};
  std::vector<std::vector<Token>> texts_;  // prompts with their answers
  std::vector<Token> plain_tokens_;
  RequestId last_id_ = 0;
  int n_answering_ = 0;
  int n_ended_ = 0;
  std::string error_;
};

}  // namespace

int SpeculationTask::n_cells() const {
  return std::ranges::max(n_sequences) * (n_prompt + n_tokens + kBehind);
}

int SpeculationTask::n_sequence_ids() const {
  return runner_options(std::ranges::max(n_sequences), Speculates::kNever).n_sequence_ids();
}

int SpeculationTask::n_outputs_max() const {
  return std::ranges::max(n_sequences) * (1 + SpeculationOptions::kDraftMax);
}

Token replaced_guess(std::span<const std::vector<Token>> texts, std::span<const Token> tokens,
                     std::span<const Token> guessed, Token said, bool is_right) {
  const std::size_t at = tokens.size() + guessed.size();
  for (const std::vector<Token>& text : texts) {
    if (at >= text.size() || !std::ranges::starts_with(text, tokens)) continue;
    const Token wanted = text[at];
    const Token wrong = said != wanted ? said : (wanted == 0 ? 1 : 0);
    const bool was_right =
        std::ranges::equal(guessed, std::span(text).subspan(tokens.size(), guessed.size()));
    return is_right && was_right ? wanted : wrong;
  }
  return said;
}

Result<std::vector<SpeculationFigures>> try_speculation(
    Model& model, const SpeculationTask& task, const std::function<void(double)>& on_progress,
    BatchDrafter* drafter) {
  if (model.has_recurrent_state()) {
    return fail(Code::kUnsupported,
                "this model has recurrent state, which cannot take drafted tokens back: it is used "
                "without drafts");
  }
  const Result<Vocabulary> vocabulary = Vocabulary::create(model.model());
  if (!vocabulary) return std::unexpected(vocabulary.error());
  SpeculationTrial trial(model, *vocabulary, task, drafter);
  std::vector<SpeculationFigures> all;
  const auto n_arms = static_cast<double>(2 * task.n_sequences.size()) * task.n_repeats;
  double n_done = 0;
  for (const AnswerKind kind : {AnswerKind::kEdit, AnswerKind::kNew}) {
    for (const int n_sequences : task.n_sequences) {
      std::vector<double> plain;
      std::vector<double> drafted;
      std::vector<double> ratios;
      SpeculationStats drafts;
      std::int64_t n_generated = 0;
      for (int repeat = 0; repeat < task.n_repeats; ++repeat) {
        // In turns, and each begins every other time.
        std::optional<Result<DraftedSpeed>> with;
        if (repeat % 2 == 1) with = trial.run(kind, n_sequences, repeat, Speculates::kWhereItPays);
        const Result<DraftedSpeed> without =
            trial.run(kind, n_sequences, repeat, Speculates::kNever);
        if (!with) with = trial.run(kind, n_sequences, repeat, Speculates::kWhereItPays);
        if (!without) return std::unexpected(without.error());
        if (!*with) return std::unexpected(with->error());
        const DraftedSpeed& speed = **with;
        plain.push_back(without->tokens_per_s);
        drafted.push_back(speed.tokens_per_s);
        ratios.push_back(drafted.back() / plain.back());
        n_generated += speed.n_generated;
        drafts.n_drafted += speed.drafts.n_drafted;
        drafts.n_accepted += speed.drafts.n_accepted;
        on_progress(++n_done / n_arms);
      }
      const auto n_accepted = static_cast<double>(drafts.n_accepted);
      const auto n = static_cast<double>(n_generated);
      all.push_back({.work = kind == AnswerKind::kEdit ? "edit" : "new",
                     .n_sequences = n_sequences,
                     .plain = spread_of(plain),
                     .drafted = spread_of(drafted),
                     .ratio = spread_of(ratios),
                     .tokens_per_step = n / (n - n_accepted),
                     .accepted = drafts.n_drafted == 0
                                     ? 0
                                     : n_accepted / static_cast<double>(drafts.n_drafted)});
    }
  }
  return all;
}

std::string speculation_table(const std::vector<SpeculationFigures>& figures, bool as_markdown) {
  TextTable table({"work", "sequences", "tokens/s without", "with", "ratio", "least to most",
                   "tokens a step", "accepted"});
  for (const SpeculationFigures& one : figures) {
    table.add({one.work, std::to_string(one.n_sequences), format_text("{:.1f}", one.plain.median),
               format_text("{:.1f}", one.drafted.median), format_text("{:.2f}x", one.ratio.median),
               format_text("{:.2f} to {:.2f}", one.ratio.min, one.ratio.max),
               format_text("{:.2f}", one.tokens_per_step),
               format_text("{:.0f} %", 100 * one.accepted)});
  }
  return as_markdown ? table.markdown() : table.plain();
}

}  // namespace slipstream::bench
