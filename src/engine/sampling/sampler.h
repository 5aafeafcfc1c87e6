// Sampler: chooses the next token of one sequence, over libllama's samplers, and remembers what the
// choice depends on: the tokens so far, the place in the grammar, the state of the dice.
//
//   bias -> penalties -> DRY -> top_k -> typical_p -> top_p -> min_p -> temperature -> dice
//
// as in llama.cpp. Greedily (temperature 0) what follows DRY is left out: the highest logit wins,
// of equal ones the lowest id. The same seed and logits give the same tokens.
//
// Threads: thread-compatible; create() may run on another thread than sample().
// Errors:  create(): kInvalidArgument. sample(): kCorrupt for logits that are none (logprobs.h),
//          kInvalidArgument where bans or the grammar leave no token. It must not be used after
//          that.
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
#include "engine/sampling/sampling_params.h"
#include "engine/text/vocabulary.h"

struct llama_sampler;
struct llama_token_data;

namespace slipstream {

struct Sampled {
  Token token = 0;
  std::optional<TokenLogprobs> logprobs = {};  // if SamplingParams asked for them
};

class Sampler {
 public:
  // The vocabulary must outlive the sampler.
  [[nodiscard]] static Result<Sampler> create(const Vocabulary& vocabulary,
                                              const SamplingParams& params);

  // One that has chosen nothing yet, of the same parameters but for the seed: without reading the
  // grammar again, or looking for DRY's breakers in the whole vocabulary.
  [[nodiscard]] Sampler clone(const SamplingParams& params) const;

  Sampler(Sampler&& other) noexcept;
  Sampler& operator=(Sampler&& other) noexcept;
  ~Sampler();

  // What was there before the answer: penalties and DRY see it, the grammar does not.
  void accept_prompt(std::span<const Token> tokens);

  // Chooses by the logits, one per token of the vocabulary, and goes on by the token.
  [[nodiscard]] Result<Sampled> sample(std::span<const float> logits);

  // The one asked for, or the one taken where none was.
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

  void remember(Token token);
  void adjust_by_history();
  [[nodiscard]] Result<Token> choose_adjusted(std::span<const float> logits);
  [[nodiscard]] Result<Token> choose();
  [[nodiscard]] Result<Token> choose_allowed(GrammarMatcher& grammar);

  const Vocabulary* vocabulary_;
  std::vector<LogitBias> biases_;
  SamplerPtr history_;  // penalties and DRY; none if both are off
  SamplerPtr dice_;     // all after them; none: greedy
  std::optional<GrammarMatcher> grammar_;
  bool prunes_ = false;  // see choose()
  int n_top_logprobs_ = -1;
  std::uint32_t seed_ = 0;

  std::size_t n_history_max_ = 0;  // tokens that history_ looks back at
  std::vector<Token> seen_;        // each once
  std::vector<bool> is_seen_;

  // Of one call, kept for the next.
  std::vector<float> logits_;
  std::vector<llama_token_data> candidates_;
  std::vector<bool> allowed_;
};

}  // namespace slipstream
