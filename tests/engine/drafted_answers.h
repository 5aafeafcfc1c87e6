// What tests of speculation ask, and how answers with and without drafts are compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "runner_on_needles.h"

namespace slipstream {

// Batches of one row and of several are computed by different kernels. Where two tokens are as
// likely as each other but for this, either is the right answer.
inline constexpr float kTie = 0.06F;

// How many tokens each answer has; a few in the gate, more at night.
inline int n_tokens_each() {
  const char* n_wanted = std::getenv("SLIPSTREAM_SPECULATION_TOKENS");
  return n_wanted != nullptr ? std::atoi(n_wanted) : 48;
}

inline RunnerOptions options_with(const SpeculationOptions& speculation, int n_sequences) {
  return {.n_sequences_max = n_sequences, .n_prefixes_max = 16, .speculation = speculation};
}

// So that all drafts are those of a batch drafter.
class FindsNothing final : public Drafter {
 public:
  Draft propose(std::span<const Token> /*tokens*/, int /*n_max*/) override { return {}; }
  std::size_t n_bytes() const override { return 0; }
};

inline constexpr SpeculationOptions kAlways{.speculates = Speculates::kAlways, .n_draft_max = 5};

inline GenerateRequest greedy_request(std::vector<Token> prompt, int n_tokens) {
  GenerateRequest request{
      .prompt = std::move(prompt), .n_tokens_max = n_tokens, .ignores_end = true};
  request.sampling.temperature = 0;
  request.sampling.n_top_logprobs = 2;
  return request;
}

inline std::vector<GenerateRequest> long_requests(const Vocabulary& vocabulary, int n, int n_tokens,
                                                  std::size_t n_chars = 300) {
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < n; ++i) {
    const std::size_t n_more = 100 * static_cast<std::size_t>(i) % 500;
    const std::string prompt = make_needle(static_cast<unsigned>(i), n_chars + n_more).prompt;
    requests.push_back(greedy_request(*vocabulary.tokenize(prompt, false, true), n_tokens));
  }
  return requests;
}

inline std::vector<Outcome> run_all(RunnerOnNeedles& engine,
                                    const std::vector<GenerateRequest>& asked) {
  std::vector<RequestId> ids;
  for (const GenerateRequest& request : asked) ids.push_back(engine.ask(request));
  engine.run();
  std::vector<Outcome> outcomes;
  for (const RequestId id : ids) outcomes.push_back(engine.outcomes[id]);
  return outcomes;
}

// The prompts are computed before: time decides how they are cut into batches beside others that
// generate, and that decides how they are rounded.
inline std::vector<Outcome> run_behind_prompts(RunnerOnNeedles& engine,
                                               const std::vector<GenerateRequest>& asked) {
  for (GenerateRequest prompt : asked) {
    prompt.n_tokens_max = 0;
    (void)run_all(engine, {prompt});
  }
  return run_all(engine, asked);
}

// The tokens up to the first difference, which must be a tie.
inline std::size_t n_same(const Outcome& a, const Outcome& b) {
  const std::size_t n = std::min(a.tokens.size(), b.tokens.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (a.tokens[i] == b.tokens[i]) continue;
    const auto& top = a.logprobs.at(i).top;
    EXPECT_LT(top.at(0).logprob - top.at(1).logprob, kTie)
        << "token " << i << ": " << a.tokens[i] << " and " << b.tokens[i];
    return i;
  }
  EXPECT_EQ(a.tokens.size(), b.tokens.size());
  return n;
}

inline std::size_t n_same(const std::vector<Outcome>& a, const std::vector<Outcome>& b) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) n += n_same(a[i], b[i]);
  return n;
}

inline std::string path_of(const std::string& shape) {
  return std::string(SLIPSTREAM_FIXTURES) + "/" + shape + ".gguf";
}

}  // namespace slipstream
