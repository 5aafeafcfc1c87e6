// Sampler: chooses the next token of one sequence with libllama's samplers. It keeps what this
// depends on: the tokens so far, the position in the grammar, the state of the random generator.
//
//   bias -> penalties -> DRY -> top_k -> typical_p -> top_p -> min_p -> temperature -> dice
//
// as in llama.cpp. Tokens that would end the answer too early are banned before top_k. At temperature 0 (greedy) the steps after DRY are left out: the highest logit
// wins; among equal ones, the lowest id. The same seed and logits give the same tokens.
//
// Threads: thread-compatible; create() may run on another thread than sample().
// Errors:  create(): kInvalidArgument. sample(): kCorrupt for logits that are not valid
//          (logprobs.h); kInvalidArgument if bans or the grammar leave no token. The sampler must
//          not be used after an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "engine/sampling/grammar_matcher.h"
#include "engine/sampling/logprobs.h"
#include "engine/sampling/reasoning_watch.h"
#include "engine/sampling/sampling_params.h"
#include "engine/text/vocabulary.h"

struct llama_sampler;
struct llama_token_data;

namespace slipstream {

struct Sampled {
  Token token = 0;
  std::optional<TokenLogprobs> logprobs = {};  // if SamplingParams requested them
};

class Sampler {
 public:
  // The vocabulary must outlive the sampler.
  [[nodiscard]] static Result<Sampler> create(const Vocabulary& vocabulary,
                                              const SamplingParams& params);

  // A sampler that has chosen nothing yet, with the same parameters except the seed. Cloning avoids
  // parsing the grammar again and searching the whole vocabulary for DRY's breakers.
  [[nodiscard]] Sampler clone(const SamplingParams& params) const;

  Sampler(Sampler&& other) noexcept;
  Sampler& operator=(Sampler&& other) noexcept;
  ~Sampler();

  // The tokens before the answer: penalties and DRY see them, the grammar does not.
  void accept_prompt(std::span<const Token> tokens);

  // Chooses a token from the logits, one per token of the vocabulary, and continues after it.
  [[nodiscard]] Result<Sampled> sample(std::span<const float> logits);

  // Tokens of reasoning that were chosen. 0 without SamplingParams::reasoning.
  [[nodiscard]] int n_reasoning() const { return reasoning_ ? reasoning_->n_tokens() : 0; }

  // The requested seed, or the random one if none was requested.
  [[nodiscard]] std::uint32_t seed() const { return seed_; }

 private:
  struct Deleter {
    void operator()(llama_sampler* sampler) const;
  };
  using SamplerPtr = std::unique_ptr<llama_sampler, Deleter>;

  explicit Sampler(const Vocabulary& vocabulary);
  void add_history(const SamplingParams& params);
  void add_dice(const SamplingParams& params);
  [[nodiscard]] Result<void> add_grammar(const std::string& text);
  [[nodiscard]] Result<void> add_reasoning(const ReasoningParams& params);

  void remember(Token token);
  [[nodiscard]] std::optional<Token> banned_now() const {
    return reasoning_ ? reasoning_->banned() : std::nullopt;
  }
  [[nodiscard]] Result<std::optional<Token>> take_forced();
  [[nodiscard]] Result<Token> choose_next(std::span<const float> logits, float max);
  void adjust_by_history();
  void forbid_ends();
  [[nodiscard]] Result<Token> choose_adjusted(std::span<const float> logits);
  [[nodiscard]] Result<Token> choose();
  [[nodiscard]] Result<Token> choose_allowed(GrammarMatcher& grammar);

  const Vocabulary* vocabulary_;
  std::vector<LogitBias> biases_;
  std::vector<Token> ends_;  // that are not chosen yet where the answer must be longer
  int n_left_min_ = 0;       // tokens to choose before one of them
  SamplerPtr history_;       // penalties and DRY; null if both are off
  SamplerPtr dice_;          // everything after them; null: greedy
  std::optional<GrammarMatcher> grammar_;
  std::optional<ReasoningWatch> reasoning_;
  bool prunes_ = false;  // see choose()
  int n_top_logprobs_ = -1;
  std::uint32_t seed_ = 0;

  std::size_t n_history_max_ = 0;  // how many tokens history_ looks back at
  std::vector<Token> seen_;        // without duplicates
  std::vector<bool> is_seen_;

  // Buffers of sample(), kept for the next call.
  std::vector<float> logits_;
  std::vector<llama_token_data> candidates_;
  std::vector<bool> allowed_;
  std::vector<LogitBias> forbidden_;  // ends_ with their logits, while they are banned
};

}  // namespace slipstream
