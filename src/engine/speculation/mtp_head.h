// MtpHead: a layer of the model itself that predicts a token further (multi-token prediction). It is
// computed in a context of its own, with a KV cache of this layer only, and its output is the model's.
//
// What it reads is a token together with the model's state behind the token before. So it sees every
// batch of the model (observe()), keeps the states of tokens that it has not read, and reads them some
// at a time (catch_up()) or before it guesses. A guess is read with its own state, and forgotten:
// the token that the answer has is read with the model's.
//
// Where states are missing, behind a prefix that was in the cache or after a failure, it begins anew:
// it then knows less of the text, and is less often right.
//
//   model computes   t0 t1 t2 | t3    states s0 s1 s2 s3, samples t4
//   head reads       (t1,s0) (t2,s1) (t3,s2) (t4,s3) -> t5, then (t5,own) -> t6
//
// Threads: owned by the engine's thread.
// Errors:  create(): kUnsupported where libllama cannot do it; kOutOfMemory. Later ones as in
//          batch_drafter.h, and the log says why.
#pragma once

#include <llama-cpp.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/model/model.h"
#include "engine/speculation/batch_drafter.h"
#include "engine/speculation/model_drafts.h"
#include "engine/speculation/mtp_calls.h"

namespace slipstream {

class MtpHead final : public BatchDrafter {
 public:
  // Tokens of a sequence that it puts off reading, since many take little longer than one. With these
  // and the last, no sequence is further behind than a round reads.
  static constexpr int kPutOff = ModelDrafts::kBehindMax - 1;

  // REQUIRES: the model was loaded with has_mtp, and outlives the head in the context that it has now.
  [[nodiscard]] static Result<std::unique_ptr<MtpHead>> create(const Model& model, int n_sequences);
  ~MtpHead() override;

  [[nodiscard]] std::optional<int> n_missing(SeqId seq,
                                             std::span<const Token> tokens) const override;
  [[nodiscard]] bool learn(SeqId seq, std::span<const Token> tokens, int n) override;
  [[nodiscard]] bool draft(std::span<Wish> wishes) override;
  void release(SeqId seq) override;
  void clear() override;
  [[nodiscard]] double relative_cost() const override { return relative_cost_; }
  void observe(SeqId seq, int first, int n, int batch_idx) override;
  void catch_up(SeqId seq, std::span<const Token> tokens) override;

  // Cells that sequences have. For tests.
  [[nodiscard]] int n_cells_used() const;
  // For tests: called before libllama computes a batch; a non-zero result counts as its failure.
  void set_fault(std::function<int()> fault) { fault_ = std::move(fault); }

 private:
  struct Sequence {
    int n_read = -1;               // up to which position it has been read; -1: it has not begun
    bool has_guesses = false;      // behind these, in cells
    std::vector<float> states{};   // of the token before, and of those that are not read yet
    std::vector<float> guessed{};  // its own state behind the last guess
  };

  MtpHead(const Model& model, llama_context_ptr context, MtpCalls calls, int n_sequences);

  [[nodiscard]] Sequence& of(SeqId seq) { return sequences_[static_cast<std::size_t>(seq)]; }
  [[nodiscard]] const Sequence& of(SeqId seq) const {
    return sequences_[static_cast<std::size_t>(seq)];
  }
  [[nodiscard]] int n_states(const Sequence& sequence) const;
  [[nodiscard]] bool read(SeqId seq, std::span<const Token> tokens, int n);
  [[nodiscard]] bool cut_guesses(SeqId seq);
  [[nodiscard]] bool guess_all(std::span<Wish> wishes);
  [[nodiscard]] bool add(SeqId seq, Token token, int position, std::span<const float> state,
                         Wish* wish);
  [[nodiscard]] bool compute();
  void guess(Wish& wish, int batch_idx);

  llama_context* const model_context_;
  const llama_context_ptr context_;
  const MtpCalls calls_;
  const std::size_t n_embd_;
  const std::size_t n_vocab_;
  const double relative_cost_;
  std::vector<Sequence> sequences_;
  struct FreeBatch {
    void operator()(llama_batch_ext* batch) const { llama_batch_ext_free(batch); }
  };
  const std::unique_ptr<llama_batch_ext, FreeBatch> batch_;
  std::vector<Wish*> wanted_;  // by place in the batch: whose next token its output is
  std::function<int()> fault_;
};

}  // namespace slipstream
