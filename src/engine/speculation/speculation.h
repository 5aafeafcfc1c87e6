// Speculation: drafts for the sequences that generate, and how much of them a step verifies.
//
//   lengths = speculation.propose(sequences);   // before each step
//   the step computes so many tokens of each draft behind the pending one, and samples at each
//   speculation.observe_step(...);  speculation.observe_answer(...);
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
#include <span>
#include <utility>
#include <vector>

#include "engine/speculation/acceptance.h"
#include "engine/speculation/drafter.h"
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
};

class Speculation {
 public:
  using MakeDrafter = std::function<std::unique_ptr<Drafter>()>;

  explicit Speculation(const SpeculationOptions& options);
  // For tests: for sequences that have no drafter yet.
  void set_drafters(MakeDrafter make) { make_drafter_ = std::move(make); }

  // What is kept of one request.
  struct Drafting {
    std::unique_ptr<Drafter> drafter = {};
    Acceptance acceptance = {};
    Draft draft = {};  // behind all tokens that the sequence has
  };
  struct Generating {
    Drafting* drafting;
    std::span<const Token> tokens;
    int n_left;  // tokens it may still generate, without the next
  };

  // Drafts for all sequences that generate; returns how many tokens of each are worth verifying.
  [[nodiscard]] std::vector<int> propose(std::span<const Generating> sequences);
  // The step after propose() took so long, in which all of these and nothing else was computed.
  void observe_step(int n_drafted, double seconds);
  // The request went on by `tokens`; a step verified n_drafted tokens of its draft.
  void observe_answer(Drafting& drafting, std::span<const Token> tokens);
  void count(int n_drafted, int n_accepted);

  [[nodiscard]] const SpeculationStats& stats() const { return stats_; }

 private:
  const SpeculationOptions options_;
  MakeDrafter make_drafter_;  // null: NgramDrafter
  StepCosts costs_;
  StepCosts::Kind kind_ = {};  // of the step that was planned last
  SpeculationStats stats_;
};

}  // namespace slipstream
