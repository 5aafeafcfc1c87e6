// What speculation gives on this machine: the same answers with and without it, in turns.
//
// What a model says cannot be chosen, so the answers are fixed by a grammar of tokens: both arms
// compute the same ones, and every model can be measured, whatever it knows.
//   - edit: the prompt has a text, and the answer is that text with one token in 24 changed. This is
//     what agents do with files.
//   - new: the answer is tokens that nothing announces. Here drafts can only cost, unless there is a
//     draft model.
// A draft model does all its work, but what it says is replaced: by the right token as often as the
// task says, otherwise by a wrong one.
//
// Threads: owned by the calling thread. Errors: kUnsupported if a request fails or the model does not
// speculate.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/speed/summary.h"
#include "engine/model/model.h"
#include "engine/speculation/batch_drafter.h"
#include "engine/speculation/speculation.h"

namespace slipstream::bench {

struct SpeculationTask {
  std::vector<Token> text;  // what is edited; a short one is repeated
  std::vector<int> n_sequences;
  int n_prompt = 512;
  int n_tokens = 256;  // of each answer
  int n_repeats = 3;
  double draft_acceptance = 0.7;  // how often the draft model is right, if it was so far

  // Cells that the largest arm needs.
  [[nodiscard]] int n_cells() const;
  [[nodiscard]] int n_sequence_ids() const;
  [[nodiscard]] int n_outputs_max() const;
};

// What is said instead of the draft model's own token, behind tokens of one of these texts.
[[nodiscard]] Token replaced_guess(std::span<const std::vector<Token>> texts,
                                   std::span<const Token> tokens, std::span<const Token> guessed,
                                   Token said, bool is_right);

// All sequences together.
struct SpeculationFigures {
  std::string work;
  int n_sequences = 1;
  Spread plain = {};           // tokens/s
  Spread drafted = {};         // likewise
  Spread ratio = {};           // of each repeat
  double tokens_per_step = 0;  // of one sequence, with drafts
  double accepted = 0;         // share of the drafted tokens
};

[[nodiscard]] Result<std::vector<SpeculationFigures>> try_speculation(
    Model& model, const SpeculationTask& task, const std::function<void(double)>& on_progress,
    BatchDrafter* drafter = nullptr);

[[nodiscard]] std::string speculation_table(const std::vector<SpeculationFigures>& figures,
                                            bool as_markdown);

}  // namespace slipstream::bench
