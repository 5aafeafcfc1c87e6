#include "engine/scheduling/scheduler.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace slipstream {
namespace {

constexpr int kManyTokens = 1'000'000;

// A cache without shared prefixes: a running sequence owns all that it has computed.
Supply supply_of(const SchedulerState& state, int n_prefill_tokens_max = kManyTokens) {
  int n_used = 0;
  for (const Sequence& sequence : state.sequences) n_used += sequence.n_own_cells;
  return {.n_free_cells = state.limits.n_cells - n_used,
          .n_evictable_cells = 0,
          .n_prefill_tokens_max = n_prefill_tokens_max};
}

void count_cells(SchedulerState& state) {
  for (Sequence& sequence : state.sequences) {
    sequence.n_own_cells = sequence.is_running() ? sequence.n_computed : 0;
  }
}

// Runs a step. Every sampled token is accepted; a sequence ends at its maximum.
Step run(SchedulerState& state, int n_prefill_tokens_max = kManyTokens) {
  const Step step = plan(state, supply_of(state, n_prefill_tokens_max));
  std::vector<RequestId> ended;
  for (const Work& work : step.work) {
    const Sequence& sequence = *state.find(work.id);
    if (work.samples && sequence.n_generated + 1 == sequence.n_tokens_max) ended.push_back(work.id);
  }
  commit(state, step, ended);
  count_cells(state);
  return step;
}

std::vector<RequestId> ids_of(const std::vector<Work>& work) {
  std::vector<RequestId> ids;
  for (const Work& item : work) ids.push_back(item.id);
  return ids;
}

void must_submit(SchedulerState& state, RequestId id, const std::string& client, int n_prompt,
                 int n_tokens_max, int priority = 1) {
  ASSERT_TRUE(submit(state, id, client, n_prompt, n_tokens_max, priority).has_value());
}

SchedulerState with_cells(int n_cells, int n_sequences_max = 8, int n_step_tokens_max = 64) {
  return SchedulerState({.n_cells = n_cells,
                         .n_sequences_max = n_sequences_max,
                         .n_step_tokens_max = n_step_tokens_max});
}

TEST(Scheduler, ComputesAPromptThenOneTokenAtATime) {
  SchedulerState state = with_cells(1000);
  must_submit(state, 1, "a", 100, 2);
  EXPECT_EQ(run(state), (Step{.admitted = {1}, .work = {{1, 0, 64, false}}, .n_cells_needed = 64}));
  EXPECT_EQ(run(state), (Step{.work = {{1, 64, 36, true}}, .n_cells_needed = 36}));
  EXPECT_EQ(run(state), (Step{.work = {{1, 100, 1, true}}, .n_cells_needed = 1}));
  EXPECT_TRUE(state.sequences.empty());
}

TEST(Scheduler, RefusesWhatCanNeverFit) {
  SchedulerState state = with_cells(100);
  EXPECT_EQ(submit(state, 1, "a", 0, 5).error().code, Code::kInvalidArgument);
  EXPECT_EQ(submit(state, 1, "a", 101, 0).error().message,
            "a prompt of 101 tokens and 0 to generate do not fit in a context of 100");
  EXPECT_FALSE(submit(state, 1, "a", 100, 2).has_value());
  EXPECT_FALSE(submit(state, 1, "a", 50, std::numeric_limits<int>::max()).has_value());
  EXPECT_TRUE(submit(state, 1, "a", 100, 1).has_value()) << "the last token takes no cell";
}

TEST(Scheduler, TakesOverACachedPrefixButComputesTheLastToken) {
  SchedulerState state = with_cells(1000);
  must_submit(state, 1, "a", 50, 1);
  state.sequences[0].n_cached = 50;
  EXPECT_EQ(plan(state, supply_of(state)).work, (std::vector<Work>{{1, 49, 1, true}}));
}

TEST(Scheduler, APrefixInUseCostsNoCellsToShare) {
  SchedulerState state = with_cells(1000);
  must_submit(state, 1, "a", 800, 1);
  state.sequences[0].n_cached = 790;
  const Supply tight{.n_free_cells = 20, .n_evictable_cells = 0, .n_prefill_tokens_max = 64};
  EXPECT_EQ(plan(state, tight).admitted, std::vector<RequestId>{1});
  // No running sequence uses the prefix: admission makes its cells unevictable.
  state.sequences[0].n_cached_evictable = 790;
  const Supply evictable{.n_free_cells = 5, .n_evictable_cells = 790, .n_prefill_tokens_max = 64};
  EXPECT_TRUE(plan(state, evictable).admitted.empty());
}

TEST(Scheduler, GeneratesBesideALongPromptInEveryStep) {
  SchedulerState state = with_cells(10'000);
  must_submit(state, 1, "a", 10, 100);
  run(state);
  must_submit(state, 2, "b", 5'000, 10);
  for (int i = 0; i < 50; ++i) {
    const Step step = run(state, 16);
    EXPECT_EQ(step.work.at(0), (Work{1, 10 + i, 1, true}));
    EXPECT_EQ(step.work.at(1), (Work{2, i * 16, 16, false}));
  }
}

TEST(Scheduler, AShortPromptOvertakesALongOneThatStillAdvances) {
  SchedulerState state = with_cells(10'000);
  must_submit(state, 1, "a", 5'000, 1);
  run(state);
  must_submit(state, 2, "b", 40, 1);
  EXPECT_EQ(run(state).work, (std::vector<Work>{{2, 0, 32, false}, {1, 64, 32, false}}));
  EXPECT_EQ(run(state).work, (std::vector<Work>{{2, 32, 8, true}, {1, 96, 56, false}}));
}

TEST(Scheduler, PreemptsWhatWasAdmittedLastAndRunsItAgain) {
  SchedulerState state = with_cells(100, 2);
  must_submit(state, 1, "a", 30, 60);
  must_submit(state, 2, "b", 30, 60);
  std::set<RequestId> preempted;
  std::map<RequestId, int> n_sampled;
  for (int i = 0; i < 400 && !state.sequences.empty(); ++i) {
    const Step step = run(state);
    preempted.insert(step.preempted.begin(), step.preempted.end());
    for (const Work& work : step.work) n_sampled[work.id] += work.samples ? 1 : 0;
  }
  EXPECT_EQ(preempted, std::set<RequestId>{2});
  EXPECT_EQ(n_sampled, (std::map<RequestId, int>{{1, 60}, {2, 60}}));
}

TEST(Scheduler, ClientsTakeTurns) {
  SchedulerState state = with_cells(10'000, 1);
  for (RequestId id = 1; id <= 5; ++id) must_submit(state, id, "greedy", 10, 1);
  must_submit(state, 6, "modest", 10, 1);
  std::vector<RequestId> order;
  while (!state.sequences.empty()) {
    for (const RequestId id : run(state).admitted) order.push_back(id);
  }
  EXPECT_EQ(order, (std::vector<RequestId>{1, 6, 2, 3, 4, 5}));
}

// How many of the first admitted requests belong to each client. All clients always have requests.
std::map<std::string, int> admissions(const std::map<std::string, int>& priority_of_client,
                                      int n_sequences_max) {
  SchedulerState state = with_cells(10'000, n_sequences_max);
  RequestId last_id = 0;
  std::map<RequestId, std::string> client_of;
  const auto ask = [&](const std::string& client) {
    client_of[++last_id] = client;
    must_submit(state, last_id, client, 10, 1, priority_of_client.at(client));
  };
  for (int i = 0; i < 20; ++i) {
    for (const auto& [client, priority] : priority_of_client) ask(client);
  }
  std::map<std::string, int> n_admitted;
  for (int n = 0; n < 600;) {
    for (const RequestId id : run(state).admitted) {
      ++n_admitted[client_of[id]];
      ask(client_of[id]);
      ++n;
    }
  }
  return n_admitted;
}

TEST(Scheduler, PriorityWeighsTheTurns) {
  for (const int n_sequences_max : {3, 8}) {  // no fewer than there are clients
    const auto two = admissions({{"a", 1}, {"b", 2}}, n_sequences_max);
    EXPECT_NEAR(two.at("b"), 400, 4) << n_sequences_max;
    const auto three = admissions({{"a", 1}, {"b", 2}, {"c", 3}}, n_sequences_max);
    EXPECT_NEAR(three.at("a"), 100, 4) << n_sequences_max;
    EXPECT_NEAR(three.at("c"), 300, 4) << n_sequences_max;
    const auto equal = admissions({{"a", 5}, {"b", 5}}, n_sequences_max);
    EXPECT_NEAR(equal.at("a"), 300, 4) << n_sequences_max;
  }
}

TEST(Scheduler, OneOfHighPriorityThatComesLateSavedNothingUp) {
  SchedulerState state = with_cells(10'000, 1);
  for (RequestId id = 1; id <= 20; ++id) must_submit(state, id, "a", 10, 1);
  for (int i = 0; i < 10; ++i) run(state);  // half of them
  for (RequestId id = 21; id <= 30; ++id) must_submit(state, id, "late", 10, 1, 2);
  std::vector<RequestId> order;
  while (order.size() < 9) {
    for (const RequestId id : run(state).admitted) order.push_back(id);
  }
  EXPECT_NEAR(
      static_cast<double>(std::ranges::count_if(order, [](RequestId id) { return id > 20; })), 6,
      1);
}

TEST(Scheduler, WhatDoesNotFitYetHoldsBackWhatComesAfterIt) {
  SchedulerState state = with_cells(100);
  must_submit(state, 1, "a", 50, 30);
  run(state);
  must_submit(state, 2, "b", 80, 1);
  must_submit(state, 3, "c", 1, 1);
  EXPECT_EQ(ids_of(run(state).work), std::vector<RequestId>{1});
}

TEST(Scheduler, EndsAStepWhereAStateIsToBeSaved) {
  SchedulerState state = with_cells(1000);
  must_submit(state, 1, "a", 50, 1);
  state.sequences[0].stops_at = 49;
  EXPECT_EQ(run(state).work, (std::vector<Work>{{1, 0, 49, false}}));
  EXPECT_EQ(run(state).work, (std::vector<Work>{{1, 49, 1, true}}));
}

TEST(Scheduler, RemovesASequenceThatRuns) {
  SchedulerState state = with_cells(1000);
  must_submit(state, 1, "a", 10, 100);
  must_submit(state, 2, "b", 10, 100);
  run(state);
  remove(state, 1);
  EXPECT_EQ(ids_of(run(state).work), std::vector<RequestId>{2});
}

// A sequence that generates, with a draft that is worth so many tokens.
void must_generate(SchedulerState& state, RequestId id, int n_tokens_max, int n_draft) {
  must_submit(state, id, "a", 10, n_tokens_max);
  run(state);
  state.find(id)->n_draft = n_draft;
}

TEST(Scheduler, VerifiesDraftsBehindThePendingToken) {
  SchedulerState state = with_cells(1000);
  must_generate(state, 1, 100, 4);
  Step step = plan(state, supply_of(state));
  EXPECT_EQ(step, (Step{.work = {{1, 10, 1, true, 4}}, .n_cells_needed = 5}));
  step.work[0].n_accepted = 3;
  commit(state, step, {});
  EXPECT_EQ(state.find(1)->n_generated, 5);
  EXPECT_EQ(state.find(1)->n_computed, 14);
  EXPECT_TRUE(state.find(1)->is_generating());
}

TEST(Scheduler, DraftsEndWhereTheAnswerDoes) {
  SchedulerState state = with_cells(1000);
  must_generate(state, 1, 4, 9);
  EXPECT_EQ(plan(state, supply_of(state)).work.at(0).n_drafted, 2) << "and one is sampled behind";
}

TEST(Scheduler, DraftsShareWhatIsLeft) {
  SchedulerState state = with_cells(1000, 3, 12);
  must_generate(state, 1, 100, 0);
  must_generate(state, 2, 100, 9);
  must_generate(state, 3, 100, 2);
  for (Sequence& sequence : state.sequences) sequence.n_draft = sequence.id == 2 ? 9 : 4;
  state.find(1)->n_draft = 0;
  const std::vector<Work> work = plan(state, supply_of(state)).work;
  EXPECT_EQ(work.at(0).n_drafted, 0);
  EXPECT_EQ(work.at(1).n_drafted, 5);
  EXPECT_EQ(work.at(2).n_drafted, 4);
}

TEST(Scheduler, DraftsEvictNothingAndGiveWayToPrompts) {
  SchedulerState state = with_cells(1000);
  must_generate(state, 1, 100, 8);
  const Supply tight{.n_free_cells = 3, .n_evictable_cells = 500, .n_prefill_tokens_max = 64};
  EXPECT_EQ(plan(state, tight).work.at(0).n_drafted, 2);
  const Supply full{.n_free_cells = 0, .n_evictable_cells = 500, .n_prefill_tokens_max = 64};
  EXPECT_EQ(plan(state, full).work.at(0).n_drafted, 0);
  must_submit(state, 2, "b", 500, 1);
  // Also in a step that only measures how long it takes without prompts.
  for (const int n_prefill : {16, 0}) {
    for (const Work& work : plan(state, supply_of(state, n_prefill)).work) {
      EXPECT_EQ(work.n_drafted, 0) << n_prefill;
    }
  }
}

TEST(Scheduler, DraftsTakeNoMoreOutputsThanThereAre) {
  SchedulerState state(
      {.n_cells = 1000, .n_sequences_max = 2, .n_step_tokens_max = 64, .n_outputs_max = 6});
  must_generate(state, 1, 100, 9);
  EXPECT_EQ(plan(state, supply_of(state)).work.at(0).n_drafted, 5);
}

TEST(Scheduler, ForgetsClientsThatAreGone) {
  SchedulerState state = with_cells(1000);
  for (RequestId id = 1; id <= 100; ++id) {
    must_submit(state, id, std::to_string(id), 10, 1);
    run(state);
  }
  EXPECT_TRUE(state.turn_of_client.empty());
}

// --- any trace

struct Arrival {
  int n_prompt;
  int n_tokens_max;
  int client;
  int at_step;
  int cancelled_after;  // steps; 0: never
};

rc::Gen<Arrival> any_arrival(int n_cells) {
  return rc::gen::build<Arrival>(
      rc::gen::set(&Arrival::n_prompt, rc::gen::inRange(1, n_cells)),
      rc::gen::set(&Arrival::n_tokens_max, rc::gen::inRange(0, 20)),
      rc::gen::set(&Arrival::client, rc::gen::inRange(0, 4)),
      rc::gen::set(&Arrival::at_step, rc::gen::inRange(0, 100)),
      rc::gen::set(
          &Arrival::cancelled_after,
          rc::gen::weightedOneOf<int>({{4, rc::gen::just(0)}, {1, rc::gen::inRange(1, 30)}})));
}

// Checks each guarantee of scheduler.h at every step; ends when every request has ended.
class Trace {
 public:
  Trace(SchedulerState state, std::vector<Arrival> arrivals, int n_prefill_tokens_max)
      : state_(std::move(state)),
        arrivals_(std::move(arrivals)),
        n_prefill_(n_prefill_tokens_max) {}

  std::vector<Step> run_all() {
    std::vector<Step> steps;
    for (int i = 0; i < 100 || !state_.sequences.empty(); ++i) {
      // Far more steps than all requests need one after the other.
      RC_ASSERT(i < 200'000);
      arrive_and_cancel(i);
      steps.push_back(one_step());
    }
    return steps;
  }

 private:
  void arrive_and_cancel(int step_idx) {
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
      const Arrival& arrival = arrivals_[i];
      const auto id = static_cast<RequestId>(i + 1);
      if (arrival.at_step == step_idx) {
        const bool fits =
            arrival.n_prompt + std::max(arrival.n_tokens_max - 1, 0) <= state_.limits.n_cells;
        const auto submitted = submit(state_, id, std::to_string(arrival.client), arrival.n_prompt,
                                      arrival.n_tokens_max);
        RC_ASSERT(submitted.has_value() == fits);
      }
      if (arrival.cancelled_after > 0 && step_idx == arrival.at_step + arrival.cancelled_after &&
          state_.find(id) != nullptr) {
        remove(state_, id);
      }
    }
  }

  Step one_step() {
    // Any drafts, of which any part is accepted; the same in every run of the trace.
    for (Sequence& sequence : state_.sequences) {
      sequence.n_draft = static_cast<int>((sequence.id * 7 + sequence.n_computed) % 10);
    }
    const Supply supply = supply_of(state_, n_prefill_);
    Step step = plan(state_, supply);
    check(step, supply);
    std::vector<RequestId> ended;
    for (Work& work : step.work) {
      const Sequence& sequence = *state_.find(work.id);
      work.n_accepted = (work.first * 5) % (work.n_drafted + 1);
      const bool at_end = work.first + work.n == sequence.n_tokens();
      const int n_generated = sequence.n_generated + (work.samples ? 1 + work.n_accepted : 0);
      RC_ASSERT(n_generated <= sequence.n_tokens_max);
      if (at_end && n_generated == sequence.n_tokens_max) ended.push_back(work.id);
    }
    commit(state_, step, ended);
    count_cells(state_);
    return step;
  }

  void check(const Step& step, const Supply& supply) const {
    int n_given_back = 0;
    for (const RequestId id : step.preempted) n_given_back += state_.find(id)->n_own_cells;
    RC_ASSERT(step.n_cells_needed <= supply.n_free_cells + n_given_back);
    RC_ASSERT(state_.n_running() - static_cast<int>(step.preempted.size()) +
                  static_cast<int>(step.admitted.size()) <=
              state_.limits.n_sequences_max);

    std::set<RequestId> working;
    int n_tokens = 0;
    int n_drafted = 0;
    for (const Work& work : step.work) {
      RC_ASSERT(working.insert(work.id).second);
      RC_ASSERT(work.n > 0);
      const Sequence& sequence = *state_.find(work.id);
      const bool is_new = std::ranges::find(step.admitted, work.id) != step.admitted.end();
      RC_ASSERT(is_new || sequence.is_running());
      RC_ASSERT(work.first == (is_new ? 0 : sequence.n_computed));  // in order, nothing twice
      RC_ASSERT(work.first + work.n <= sequence.n_tokens());
      RC_ASSERT(work.samples ==
                (work.first + work.n == sequence.n_tokens() && sequence.n_tokens_max > 0));
      RC_ASSERT(work.n_drafted == 0 || sequence.is_generating());
      n_tokens += work.n + work.n_drafted;
      n_drafted += work.n_drafted;
    }
    RC_ASSERT(n_tokens <= state_.limits.n_step_tokens_max);
    RC_ASSERT(n_tokens == step.n_cells_needed);
    // Only beside others that generate, and only what nobody else could use.
    const bool all_generate = std::ranges::all_of(
        step.work, [this](const Work& work) { return state_.find(work.id)->is_generating(); });
    RC_ASSERT(n_drafted == 0 || (all_generate && step.preempted.empty() && step.admitted.empty()));

    int n_prompt_tokens = 0;
    for (const Work& work : step.work) {
      n_prompt_tokens += state_.find(work.id)->is_generating() ? 0 : work.n;
    }
    for (const Sequence& sequence : state_.sequences) {
      const bool is_preempted =
          std::ranges::find(step.preempted, sequence.id) != step.preempted.end();
      if (!sequence.is_running() || is_preempted) continue;
      if (sequence.is_generating()) {
        RC_ASSERT(working.contains(sequence.id));
        RC_ASSERT(n_prompt_tokens <= n_prefill_);
      }
    }
    // If anything waits or runs, the step has work.
    RC_ASSERT(state_.sequences.empty() || !step.work.empty());
    const auto first = std::ranges::min_element(state_.sequences, {}, [](const Sequence& s) {
      return s.is_running() ? s.admission_no : INT64_MAX;
    });
    if (first != state_.sequences.end() && first->is_running())
      RC_ASSERT(working.contains(first->id));
  }

  SchedulerState state_;
  std::vector<Arrival> arrivals_;
  int n_prefill_;
};

RC_GTEST_PROP(SchedulerProperty, EveryRequestEndsAndNoPromiseIsBroken, ()) {
  const int n_cells = *rc::gen::inRange(20, 400);
  const int n_sequences_max = *rc::gen::inRange(1, 10);
  const int n_step_tokens_max = n_sequences_max + *rc::gen::inRange(0, 60);
  const auto arrivals = *rc::gen::container<std::vector<Arrival>>(any_arrival(n_cells));
  // At least one token beside generating sequences; otherwise prompts would not advance.
  const int n_prefill = *rc::gen::inRange(1, 64);
  RC_PRE(n_step_tokens_max > n_sequences_max);
  const SchedulerState state = with_cells(n_cells, n_sequences_max, n_step_tokens_max);
  const std::vector<Step> steps = Trace(state, arrivals, n_prefill).run_all();
  RC_ASSERT(steps == Trace(state, arrivals, n_prefill).run_all());  // plans are deterministic
}

// A request is admitted once its turn has come, however many others arrive.
RC_GTEST_PROP(SchedulerProperty, AStreamOfNewClientsKeepsNobodyOut, ()) {
  SchedulerState state = with_cells(200, 2, 32);
  must_submit(state, 1, "patient", *rc::gen::inRange(1, 150), 10);
  must_submit(state, 2, "patient", *rc::gen::inRange(1, 150), 10);
  const int n_prompt = *rc::gen::inRange(1, 100);
  const int priority = *rc::gen::inRange(1, 10);
  for (RequestId id = 3; id < 2000 && state.find(2) != nullptr; ++id) {
    must_submit(state, id, "client " + std::to_string(id), n_prompt, 5, priority);
    run(state);
  }
  const bool is_done = state.find(2) == nullptr;
  RC_ASSERT(is_done);
}

TEST(Scheduler, AnImageSharesNoWorkWithWords) {
  SchedulerState state = with_cells(1000);
  must_submit(state, 1, "a", 40, 2);
  state.find(1)->images = {{.first = 5, .end = 15, .is_whole = false},
                           {.first = 15, .end = 25, .is_whole = false}};
  const std::vector<Work> expected = {{.id = 1, .first = 0, .n = 5, .samples = false},
                                      {.id = 1, .first = 5, .n = 10, .samples = false},
                                      {.id = 1, .first = 15, .n = 10, .samples = false},
                                      {.id = 1, .first = 25, .n = 15, .samples = true},
                                      {.id = 1, .first = 40, .n = 1, .samples = true}};
  for (const Work& work : expected) EXPECT_EQ(run(state).work, std::vector{work});
}

TEST(Scheduler, AnImageIsComputedInPartsUnlessItIsWhole) {
  for (const bool is_whole : {false, true}) {
    SchedulerState state = with_cells(1000, 8, 64);
    must_submit(state, 1, "a", 4, 100);
    run(state);  // the first one generates from now on
    must_submit(state, 2, "b", 50, 2);
    state.find(2)->images = {{.first = 0, .end = 40, .is_whole = is_whole}};
    std::vector<int> lengths;
    while (state.find(2)->n_generated == 0) {
      for (const Work& work : run(state, 8).work) {
        if (work.id == 2) lengths.push_back(work.n);
        EXPECT_TRUE(work.id == 2 || work.n == 1);  // nobody waits for the image
      }
    }
    EXPECT_EQ(std::ranges::max(lengths), is_whole ? 40 : 8) << is_whole;
  }
}

TEST(Scheduler, AWholeImageWaitsForItsCells) {
  SchedulerState state = with_cells(60);
  must_submit(state, 1, "a", 20, 10);
  run(state);
  must_submit(state, 2, "b", 36, 2);
  state.find(2)->images = {{.first = 2, .end = 34, .is_whole = true}};
  int n_steps = 0;
  while (!state.sequences.empty()) {
    for (const Work& work : run(state).work) {
      const bool is_image = work.id == 2 && work.first >= 2 && work.first < 34;
      EXPECT_EQ(is_image, work.n == 32);
    }
    ASSERT_LT(++n_steps, 100);
  }
}

TEST(Scheduler, WhoIsNotReadyHoldsNobodyBack) {
  SchedulerState state = with_cells(1000);
  must_submit(state, 1, "a", 10, 2);
  must_submit(state, 2, "b", 10, 2);
  state.find(1)->is_ready = false;
  EXPECT_EQ(run(state).admitted, std::vector<RequestId>{2});
  EXPECT_EQ(run(state).admitted, std::vector<RequestId>{});
  state.find(1)->is_ready = true;
  EXPECT_EQ(run(state).admitted, std::vector<RequestId>{1});
}

}  // namespace
}  // namespace slipstream
