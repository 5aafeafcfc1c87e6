// Scheduler: who computes what in the next batch. Pure: no model, no clock, no chance; the same
// calls give the same plans.
//
//   submit(state, ...);  then again and again:  step = plan(state, supply);  run it;  commit(state,
//   step, ended);
//
// A sequence waits, then runs. Of a running sequence the tokens from n_computed on are still to be
// computed: many of a prompt, one when it generates. The step that computes the last of them
// samples the next. What plan() promises:
//   - never more cells than the supply has, nor more tokens or sequences than the limits allow
//   - every running sequence that generates gets its token in every step. Prompts get what is left
//   of
//     the batch, at most supply.n_prefill_tokens_max beside others that generate: half of it the
//     sequence admitted first, half the one with the least left, so that neither a long prompt nor
//     many short ones hold up the rest
//   - clients take turns (weighted fair queueing): a client that asks for much waits for itself,
//   and
//     one of priority 2 has twice the turns of one of priority 1. Where more clients wait than can
//     run at a time, the order of arrival counts for more, so that newcomers are not kept out
//   - a request that does not fit yet holds back those behind it: small ones could otherwise keep a
//     large one out for ever
//   - when cells run out, the sequence admitted last goes back to waiting, with all its tokens. The
//   one
//     admitted first always advances, so every request ends
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
  int n_sequences_max;                                  // that run at a time
  int n_step_tokens_max;                                // of one batch, at least n_sequences_max
  int n_outputs_max = std::numeric_limits<int>::max();  // of one batch, more than n_sequences_max
};

// What a step may use.
struct Supply {
  int n_free_cells;          // that nobody owns
  int n_evictable_cells;     // of cached prefixes that no running sequence uses
  int n_prefill_tokens_max;  // of prompts in a step in which others generate
};

struct Sequence {
  RequestId id = 0;
  std::string client;
  int priority = 1;  // of the client: 2 has twice the turns of 1
  double turn = 0;   // lower ones are admitted first; given by submit()
  int n_prompt = 0;
  int n_tokens_max = 0;  // to generate
  int n_generated = 0;
  int n_computed = 0;                  // tokens whose keys and values are in the cache
  bool wants_prompt_logprobs = false;  // each token of the prompt takes an output, too
  int stops_at = 0;  // a step ends after so many tokens, where its state is to be saved
  std::int64_t admission_no = 0;  // running sequences in the order of admission; 0: it waits

  // The owner of the cache keeps these up to date.
  int n_cached = 0;            // waiting: tokens that a cached prefix holds
  int n_cached_evictable = 0;  // waiting: of these, what no running sequence uses
  int n_own_cells = 0;         // running: cells that no other running sequence uses

  [[nodiscard]] bool is_running() const { return admission_no != 0; }
  [[nodiscard]] int n_tokens() const { return n_prompt + n_generated; }
  [[nodiscard]] int n_pending() const { return n_tokens() - n_computed; }
  [[nodiscard]] bool is_generating() const { return n_generated > 0 && n_pending() == 1; }
};

// Tokens [first, first + n) of a sequence; the next one is sampled if these reach its end.
struct Work {
  RequestId id;
  int first;
  int n;
  bool samples;

  bool operator==(const Work&) const = default;
};

// In this order: preempted sequences give back their cells, admitted ones take over the n_cached
// tokens of their prefix, prefixes are evicted until n_cells_needed are free, the work is computed.
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
  std::map<std::string, double> turn_of_client;  // the next turn of each, where it lies ahead
  double turn = 0;                               // the virtual clock: what each client had so far
  std::int64_t n_admissions = 0;
};

// Whether a request of this size can ever run.
[[nodiscard]] Result<void> check_size(int n_cells, std::size_t n_prompt, int n_tokens_max);

[[nodiscard]] Result<void> submit(SchedulerState& state, RequestId id, std::string client,
                                  int n_prompt, int n_tokens_max, int priority = 1);

[[nodiscard]] Step plan(const SchedulerState& state, const Supply& supply);

// After the step has run. `ended` ones are finished or failed and are forgotten.
void commit(SchedulerState& state, const Step& step, std::span<const RequestId> ended);

// Between steps: a client gave up.
void remove(SchedulerState& state, RequestId id);

}  // namespace slipstream
