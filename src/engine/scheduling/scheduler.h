// Scheduler: decides which sequence computes what in the next batch. Pure: no model, no clock, no
// randomness; the same calls give the same plans.
//
//   submit(state, ...);
//   step = plan(state, supply);  run it;  commit(state, step, ended);  // repeatedly
//
// A sequence waits, then runs. The tokens of a running sequence from n_computed on are still to be
// computed: many during a prompt, one while it generates. The step that computes the last of them
// samples the next one. Behind that one it may compute drafted tokens; of these the accepted ones
// have become tokens of the sequence when the step is over.
//
// Threads: thread-compatible. Errors: submit() refuses what could never run (kInvalidArgument).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/request.h"

namespace slipstream {

struct SchedulerLimits {
  int n_cells;                                          // of the KV cache; a token takes one
  int n_sequences_max;                                  // running at a time
  int n_step_tokens_max;                                // per batch; at least n_sequences_max
  int n_outputs_max = std::numeric_limits<int>::max();  // per batch; more than n_sequences_max
};

// What a step may use.
struct Supply {
  int n_free_cells;          // owned by nobody
  int n_evictable_cells;     // of cached prefixes that no running sequence uses
  int n_prefill_tokens_max;  // prompt tokens in a step in which others generate
};

// Tokens of a prompt that are an image's cells. They share no work with words, and all of a whole image
// is computed in one step.
struct ImageRange {
  int first;
  int end;
  bool is_whole;
};

struct Sequence {
  RequestId id = 0;
  std::string client;
  int priority = 1;  // of the client: 2 gets twice the turns of 1
  double turn = 0;   // lower ones are admitted first; set by submit()
  int n_prompt = 0;
  int n_tokens_max = 0;  // to generate
  int n_generated = 0;
  int n_computed = 0;                   // tokens whose keys and values are in the cache
  bool wants_prompt_logprobs = false;   // each prompt token needs an output, too
  int stops_at = 0;                     // a step ends at this token, where the state is to be saved
  int n_draft = 0;                      // drafted tokens that are worth verifying in the next step
  std::vector<ImageRange> images = {};  // in the order of the prompt
  std::int64_t admission_no = 0;        // orders running sequences; 0: waiting

  // The owner of the cache keeps these up to date.
  int n_cached = 0;            // waiting: tokens that a cached prefix holds
  int n_cached_evictable = 0;  // waiting: of these, those that no running sequence uses
  bool is_ready = true;        // waiting: all images that it computes have been read
  int n_own_cells = 0;         // running: cells that no other running sequence uses

  [[nodiscard]] bool is_running() const { return admission_no != 0; }
  [[nodiscard]] int n_tokens() const { return n_prompt + n_generated; }
  [[nodiscard]] int n_pending() const { return n_tokens() - n_computed; }
  [[nodiscard]] bool is_generating() const { return n_generated > 0 && n_pending() == 1; }
};

// Tokens [first, first + n) of a sequence. If they reach its end, the next token is sampled; then
// drafted tokens may follow them.
struct Work {
  RequestId id;
  int first;
  int n;
  bool samples;
  int n_drafted = 0;
  int n_accepted = 0;  // of these; whoever ran the work sets it

  bool operator==(const Work&) const = default;
};

// Order: preempted sequences release their cells; admitted ones take over the n_cached tokens of
// their prefix; prefixes are evicted until n_cells_needed are free; then the work is computed.
struct Step {
  std::vector<RequestId> preempted = {};
  std::vector<RequestId> admitted = {};
  std::vector<Work> work = {};
  int n_cells_needed = 0;

  bool operator==(const Step&) const = default;
};

struct SchedulerState {
  explicit SchedulerState(const SchedulerLimits& limits);

  [[nodiscard]] Sequence* find(RequestId id);
  [[nodiscard]] const Sequence* find(RequestId id) const;
  [[nodiscard]] int n_running() const;

  SchedulerLimits limits;
  std::vector<Sequence> sequences;               // in the order of arrival
  std::map<std::string, double> turn_of_client;  // each client's next turn, if in the future
  double turn = 0;                               // virtual clock: what each client has had so far
  std::int64_t n_admissions = 0;
};

// Whether a request of this size can ever run.
[[nodiscard]] Result<void> check_size(int n_cells, std::size_t n_prompt, int n_tokens_max);

[[nodiscard]] Result<void> submit(SchedulerState& state, RequestId id, std::string client,
                                  int n_prompt, int n_tokens_max, int priority = 1);

// Guarantees:
//   - It never uses more cells than the supply has, nor more tokens or sequences than the limits.
//   - Every generating sequence gets its token in every step. Prompts get the rest of the batch, at
//     most supply.n_prefill_tokens_max if others generate. Half of it goes to the sequence admitted
//     first, half to the one with the least left, so that neither a long prompt nor many short ones
//     hold up the rest. Only a whole image may be more than n_prefill_tokens_max, and more than a batch
//     has place for: it gets a batch of its own.
//   - Drafts get what is left: no cell of a prefix, no place in a step in which prompts are computed or
//     somebody gives way. No sequence gets more drafted tokens than it may still generate.
//   - Clients take turns (weighted fair queueing): a client with many requests delays only itself,
//     and priority 2 gets twice the turns of priority 1. If more clients wait than can run at a
//     time, the order of arrival counts for more, so that new clients are not kept out.
//   - A request that does not fit yet holds back those behind it: small ones could otherwise keep a
//     large one out forever. One that is not ready does not.
//   - When cells run out, the sequence admitted last goes back to waiting, with all its tokens. The
//     one admitted first always advances, so every request ends.
[[nodiscard]] Step plan(const SchedulerState& state, const Supply& supply);

// Call after the step has run. The `ended` sequences have finished or failed; they are removed.
void commit(SchedulerState& state, const Step& step, std::span<const RequestId> ended);

// Call between steps when a client gave up.
void remove(SchedulerState& state, RequestId id);

}  // namespace slipstream
