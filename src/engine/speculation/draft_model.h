// DraftModel: a small model that guesses how the sequences of a large one go on. It has a device, a
// KV scheme and a context of its own, with one sequence for each that runs.
//
// A sequence is brought up to date first: what differs from what is in its cells is cut, what is
// missing is computed. Then each round adds the most probable token to all sequences that want one.
//
// Threads: owned by the engine's thread.
// Errors:  create(): kUnsupported for other tokens than the model's, and for a recurrent state,
//          which cannot be cut. Later ones as in batch_drafter.h, and the log says why.
#pragma once

#include <llama-cpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/model/model.h"
#include "engine/speculation/batch_drafter.h"

namespace slipstream {

class DraftModel final : public BatchDrafter {
 public:
  // Tokens of a context for each sequence that runs, if they share it evenly. One that is alone may
  // have all of it.
  static constexpr std::int64_t kContextEach = 4096;

  // How a draft model is to be loaded beside a model with n_cells, of which n_sequences run.
  [[nodiscard]] static int n_cells_for(int n_cells, int n_sequences);
  // REQUIRES: the draft model was loaded with an id and an output for each sequence that runs.
  [[nodiscard]] static Result<std::unique_ptr<DraftModel>> create(Model draft, const Model& model);
  ~DraftModel() override;

  [[nodiscard]] std::optional<int> n_missing(SeqId seq,
                                             std::span<const Token> tokens) const override;
  [[nodiscard]] bool learn(SeqId seq, std::span<const Token> tokens, int n) override;
  [[nodiscard]] bool draft(std::span<Wish> wishes) override;
  void release(SeqId seq) override;
  [[nodiscard]] double relative_cost() const override { return relative_cost_; }
  void clear() override;

  [[nodiscard]] const Model& model() const { return model_; }
  // Cells that sequences have. For tests, too.
  [[nodiscard]] int n_cells_used() const;

  // For tests: called before libllama computes a batch; a non-zero result counts as its failure.
  void set_fault(std::function<int(const llama_batch&)> fault) { fault_ = std::move(fault); }

 private:
  // Tokens whose keys and values are in the cells of a sequence.
  using Held = std::vector<Token>;

  DraftModel(Model draft, double relative_cost);

  [[nodiscard]] Held& held(SeqId seq) { return held_[static_cast<std::size_t>(seq)]; }
  [[nodiscard]] const Held& held(SeqId seq) const { return held_[static_cast<std::size_t>(seq)]; }
  [[nodiscard]] std::size_t n_common(SeqId seq, std::span<const Token> tokens) const;
  void cut(SeqId seq, std::span<const Token> tokens);
  [[nodiscard]] bool add(SeqId seq, Token token, Wish* wish);
  [[nodiscard]] bool compute();
  [[nodiscard]] bool compute_all(std::span<Wish> wishes);
  void guess(Wish& wish, int batch_idx) const;

  Model model_;
  const double relative_cost_;
  std::vector<Held> held_;  // by sequence
  llama_batch batch_;
  std::vector<Wish*>
      wanted_;  // by place in the batch: whose next token its output is; null: nobody's
  std::function<int(const llama_batch&)> fault_;
};

}  // namespace slipstream
