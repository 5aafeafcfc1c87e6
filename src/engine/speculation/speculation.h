// Speculation: drafts for the sequences that generate, and how much of them a step verifies.
//
//   lengths = speculation.propose(sequences);   // before each step is planned
//   speculation.draft(planned);                 // once it is, with what it has room for
//   the step computes so many tokens of each draft behind the pending one, and samples at each
//   speculation.observe_step(...);  speculation.observe_answer(...);
//
// Drafts are found in what the sequence said before, or made by a draft model if its tokens are more
// likely to be right. What is found costs nothing until it is verified; what is made takes time, so
// it is made when its length is known.
//
// The request's own sampler chooses at each position in turn, from logits of what it has chosen
// before, until it chooses another token than the draft has. So an answer is what it would be without
// drafts (decision 029).
//
// Threads: owned by the engine's thread. Errors: none.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/speculation/acceptance.h"
#include "engine/speculation/drafter.h"
#include "engine/speculation/model_drafts.h"
#include "engine/speculation/step_costs.h"

namespace slipstream {

enum class Speculates : std::uint8_t {
  kNever,
  kWhereItPays,
  kAlways,  // whole drafts, whatever they cost; to measure and to test
};

struct SpeculationOptions {
  static constexpr int kDraftMax = 15;  // with the pending token 16 rows, which is a tile of AMX

  Speculates speculates = Speculates::kNever;
  int n_draft_max = kDraftMax;  // tokens of a draft, at most kDraftMax
};

// Since the start.
struct SpeculationStats {
  std::int64_t n_drafts = 0;
  std::int64_t n_drafted = 0;                                                  // tokens
  std::int64_t n_accepted = 0;                                                 // of those
  std::array<std::int64_t, SpeculationOptions::kDraftMax> n_accepted_at = {};  // by position
  std::int64_t n_guessed = 0;      // tokens that the draft model made
  double draft_model_seconds = 0;  // in which it made them, and learned what came before them
};

class Speculation {
 public:
  using MakeDrafter = std::function<std::unique_ptr<Drafter>()>;

  // model: a draft model; null: there is none.
  explicit Speculation(const SpeculationOptions& options, BatchDrafter* model = nullptr,
                       ModelDrafts::Clock clock = steady_seconds);
  // For tests: for sequences that have no drafter yet.
  void set_drafters(MakeDrafter make) { make_drafter_ = std::move(make); }

  // What is kept of one request.
  struct Drafting {
    std::unique_ptr<Drafter> drafter = {};
    Acceptance acceptance = {};
    Draft found = {};  // behind all tokens that the sequence has
    ModelDrafts::OfRequest model = {};
    bool uses_model = false;  // in the step that comes
    bool is_learned = false;  // the draft model learns it in the step that comes
    int n_missing = 0;        // tokens that it still has to compute

    [[nodiscard]] bool must_be_learned() const {
      return uses_model && n_missing > ModelDrafts::kBehindMax;
    }
    // Behind all tokens that the sequence has.
    [[nodiscard]] std::span<const Token> draft() const {
      return uses_model ? model.tokens : found.tokens;
    }
  };
  struct Generating {
    Drafting* drafting;
    SeqId seq;
    std::span<const Token> tokens;
    int n_left;  // tokens it may still generate, without the next
  };

  // Returns how many drafted tokens of each sequence that generates are worth verifying.
  [[nodiscard]] std::vector<int> propose(std::span<const Generating> sequences);

  // Of a sequence that generates, how many drafted tokens the step that comes verifies.
  struct Planned {
    Drafting* drafting;
    SeqId seq;
    std::span<const Token> tokens;
    int n_drafted;
  };
  // Has the draft model guess and learn. Lowers n_drafted where it failed.
  void draft(std::span<Planned> planned);
  // The step after propose() took so long, in which all of these and nothing else was computed.
  void observe_step(int n_drafted, double seconds);
  // The request went on by `tokens`.
  void observe_answer(Drafting& drafting, std::span<const Token> tokens);
  void count(int n_drafted, int n_accepted);
  // What the last batch had of a sequence, and what the sequence has since (batch_drafter.h).
  void observe_batch(SeqId seq, int first, int n, int batch_idx);
  void catch_up(SeqId seq, std::span<const Token> tokens);
  // The sequence ends or gives way: what the draft model has of it is not worth keeping.
  void release(SeqId seq);

  [[nodiscard]] SpeculationStats stats() const;

 private:
  [[nodiscard]] static double steady_seconds();
  [[nodiscard]] std::vector<double> find(const Generating& sequence, int n_max);
  void offer(const Generating& sequence, int n_max, std::vector<double>& chances);
  [[nodiscard]] double relative_cost(std::span<const Generating> sequences,
                                     std::span<const int> lengths, int patience) const;
  [[nodiscard]] static std::vector<int> whole(std::span<const Generating> sequences,
                                              std::span<const std::vector<double>> chances);
  [[nodiscard]] std::vector<int> worthwhile(std::span<const Generating> sequences,
                                            std::vector<std::vector<double>> chances);

  const SpeculationOptions options_;
  MakeDrafter make_drafter_;  // null: NgramDrafter
  std::optional<ModelDrafts> model_;
  StepCosts costs_;
  StepCosts::Kind kind_ = {};  // of the step that was planned last
  SpeculationStats stats_;
};

}  // namespace slipstream
