#include "engine/scheduling/scheduler.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <ranges>
#include <string_view>

#include "base/check.h"
#include "base/format.h"

namespace slipstream {
namespace {

// What a request costs in its client's turns. A generated token takes about as long as four prompt
// tokens, which share the reading of the weights. The number of tokens a request will generate is
// not known; most end long before their maximum.
constexpr double kCostOfGenerated = 4;
constexpr int kGeneratedGuess = 256;

// Cells kept free per running sequence when another is admitted; otherwise the next steps would
// preempt it.
constexpr int kCellsToGrow = 16;

double cost(int n_prompt, int n_tokens_max) {
  return n_prompt + kCostOfGenerated * std::min(n_tokens_max, kGeneratedGuess);
}

// Among how many clients the machine is shared, weighted by priority. Not more than can run at a
// time: with thousands of clients the clock would almost stop, and new clients would overtake all
// that wait.
double n_shares(const SchedulerState& state) {
  std::map<std::string_view, int> priority_of_client;
  for (const Sequence& sequence : state.sequences) {
    priority_of_client[sequence.client] = sequence.priority;
  }
  std::vector<int> priorities;
  for (const auto& [client, priority] : priority_of_client) priorities.push_back(priority);
  std::ranges::sort(priorities, std::greater());
  const auto n_max = static_cast<std::size_t>(state.limits.n_sequences_max);
  double n = 0;
  for (const int priority : priorities | std::views::take(n_max)) n += priority;
  return n;
}

// Tokens of a prompt that may be computed in one piece of work: words, or an image's cells.
struct Run {
  int first;  // what is computed next
  int end;
  bool is_whole;

  [[nodiscard]] int n_least() const { return is_whole ? end - first : 1; }
};

Run run_at(const Sequence& sequence, int first) {
  for (const ImageRange& image : sequence.images) {
    if (first < image.first) return {.first = first, .end = image.first, .is_whole = false};
    if (first < image.end) return {.first = first, .end = image.end, .is_whole = image.is_whole};
  }
  return {.first = first, .end = std::numeric_limits<int>::max(), .is_whole = false};
}

class Planner {
 public:
  Planner(const SchedulerState& state, const Supply& supply)
      : state_(state),
        supply_(supply),
        n_cells_(supply.n_free_cells + supply.n_evictable_cells),
        n_tokens_(state.limits.n_step_tokens_max),
        n_prompt_outputs_(state.limits.n_outputs_max - state.limits.n_sequences_max) {
    for (const Sequence& sequence : state.sequences) {
      (sequence.is_running() ? running_ : waiting_).push_back(&sequence);
    }
    std::ranges::sort(running_, {}, &Sequence::admission_no);
    // Stable: requests with the same turn stay in the order of arrival.
    std::ranges::stable_sort(waiting_, {}, &Sequence::turn);
  }

  Step make() {
    preempt();
    generate();
    admit();
    prefill();
    for (const Work& work : step_.work) step_.n_cells_needed += work.n;
    add_drafts();
    return std::move(step_);
  }

 private:
  // Preempts until every generating sequence gets its cell, and the first one gets at least one.
  void preempt() {
    while (running_.size() > 1 && n_cells_wanted() > n_cells_) {
      step_.preempted.push_back(running_.back()->id);
      n_cells_ += running_.back()->n_own_cells;
      running_.pop_back();
    }
  }

  [[nodiscard]] int n_cells_wanted() const {
    const auto n_generating = std::ranges::count_if(running_, &Sequence::is_generating);
    const Sequence& first = *running_.front();
    return static_cast<int>(n_generating) +
           (first.is_generating() ? 0 : run_at(first, first.n_computed).n_least());
  }

  void generate() {
    for (const Sequence* sequence : running_) {
      if (sequence->is_generating()) {
        compute(*sequence, sequence->n_computed, 1);
      } else {
        prompts_.push_back({.sequence = sequence,
                            .n_computed = sequence->n_computed,
                            .n_pending = sequence->n_pending()});
      }
    }
  }

  void admit() {
    if (!step_.preempted.empty()) return;  // all free cells are needed
    // Cells that running sequences will still take.
    int n_reserved = 0;
    for (const Sequence* sequence : running_) {
      n_reserved += sequence->is_generating() ? kCellsToGrow : sequence->n_pending() + kCellsToGrow;
    }
    for (const Sequence* sequence : waiting_) {
      if (!sequence->is_ready) continue;
      const int n_running = static_cast<int>(running_.size() + step_.admitted.size());
      if (n_running == state_.limits.n_sequences_max) return;
      // A prompt's last token is always computed: the next token is sampled from its output.
      const int n_cached = std::min(sequence->n_cached, sequence->n_tokens() - 1);
      const int n_pending = sequence->n_tokens() - n_cached;
      // Taking over a prefix that no other sequence uses makes it unevictable.
      const int n_wanted = n_pending + sequence->n_cached_evictable;
      const int n_to_grow = n_running > 0 ? kCellsToGrow : 0;
      if (n_wanted + n_to_grow > n_cells_ - n_reserved) return;
      step_.admitted.push_back(sequence->id);
      n_cells_ -= sequence->n_cached_evictable;
      n_reserved += n_pending + kCellsToGrow;
      prompts_.push_back({.sequence = sequence, .n_computed = n_cached, .n_pending = n_pending});
    }
  }

  void prefill() {
    if (prompts_.empty()) return;
    int n_left = step_.work.empty() ? n_tokens_ : std::min(n_tokens_, supply_.n_prefill_tokens_max);
    // Rounded up: a single token must go to the first sequence.
    const int n_given = prefill(prompts_.front(), (n_left + 1) / 2);
    n_left -= n_given;
    std::ranges::stable_sort(prompts_, {}, &Prompt::n_pending);
    for (Prompt& prompt : prompts_) n_left -= prefill(prompt, n_left);
    // One work item per sequence, even if it got both halves.
    for (const Prompt& prompt : prompts_) {
      if (prompt.n_given > 0) {
        step_.work.push_back(
            {.id = prompt.sequence->id,
             .first = prompt.n_computed,
             .n = prompt.n_given,
             .samples = prompt.n_pending == 0 && prompt.sequence->n_tokens_max > 0});
      }
    }
  }

  // One token to each in turns, so that no long draft keeps others out.
  void add_drafts() {
    if (!prompts_.empty() || !step_.preempted.empty()) return;
    const int n_outputs = state_.limits.n_outputs_max - static_cast<int>(step_.work.size());
    int n_left = std::min({supply_.n_free_cells - step_.n_cells_needed, n_tokens_, n_outputs});
    for (int length = 1; n_left > 0; ++length) {
      const int n_before = n_left;
      for (Work& work : step_.work) {
        const Sequence& sequence = *state_.find(work.id);
        const int n_wanted =
            std::min(sequence.n_draft, sequence.n_tokens_max - sequence.n_generated - 1);
        if (n_wanted < length || n_left == 0) continue;
        ++work.n_drafted;
        ++step_.n_cells_needed;
        --n_left;
      }
      if (n_left == n_before) return;
    }
  }

  struct Prompt {
    const Sequence* sequence;
    int n_computed;
    int n_pending;
    int n_given = 0;
  };

  int prefill(Prompt& prompt, int n_tokens_max) {
    const Run run = run_at(*prompt.sequence, prompt.n_computed);
    if (run.is_whole) return prefill_whole(prompt, run, n_tokens_max);
    const int n_left_of_run = run.end - prompt.n_computed - prompt.n_given;
    int n = std::min({prompt.n_pending, std::max(n_tokens_max, 0), n_cells_, n_left_of_run});
    if (const int stops_at = prompt.sequence->stops_at; prompt.n_computed < stops_at) {
      n = std::min(n, stops_at - prompt.n_computed - prompt.n_given);
    }
    if (prompt.sequence->wants_prompt_logprobs) {
      n = std::min(n, n_prompt_outputs_);
      n_prompt_outputs_ -= n;
    }
    prompt.n_given += n;
    prompt.n_pending -= n;
    n_cells_ -= n;
    return n;
  }

  // All of it or nothing.
  int prefill_whole(Prompt& prompt, const Run& run, int n_tokens_max) {
    const int n = run.n_least();
    if (prompt.n_given > 0 || n_tokens_max <= 0 || n > n_cells_) return 0;
    prompt.n_given = n;
    prompt.n_pending -= n;
    n_cells_ -= n;
    return n;
  }

  void compute(const Sequence& sequence, int first, int n) {
    if (n_cells_ < n) return;  // only if one sequence is left whose cells are not counted yet
    step_.work.push_back({.id = sequence.id, .first = first, .n = n, .samples = true});
    n_cells_ -= n;
    n_tokens_ -= n;
  }

  const SchedulerState& state_;
  const Supply& supply_;
  int n_cells_;                           // left
  int n_tokens_;                          // left of the batch
  int n_prompt_outputs_;                  // left beside those that are sampled from
  std::vector<const Sequence*> running_;  // in the order of admission
  std::vector<const Sequence*> waiting_;  // in the order of their turns
  std::vector<Prompt> prompts_;
  Step step_;
};

}  // namespace

SchedulerState::SchedulerState(const SchedulerLimits& chosen) : limits(chosen) {
  SLIP_CHECK(limits.n_sequences_max > 0 && limits.n_step_tokens_max >= limits.n_sequences_max &&
                 limits.n_outputs_max > limits.n_sequences_max,
             "every running sequence must be able to generate in one step");
}

Sequence* SchedulerState::find(RequestId id) {
  const auto found = std::ranges::find(sequences, id, &Sequence::id);
  return found == sequences.end() ? nullptr : &*found;
}

const Sequence* SchedulerState::find(RequestId id) const {
  const auto found = std::ranges::find(sequences, id, &Sequence::id);
  return found == sequences.end() ? nullptr : &*found;
}

int SchedulerState::n_running() const {
  return static_cast<int>(std::ranges::count_if(sequences, &Sequence::is_running));
}

Result<void> check_size(int n_cells, std::size_t n_prompt, int n_tokens_max) {
  if (n_prompt == 0) return fail(Code::kInvalidArgument, "the prompt is empty");
  if (n_tokens_max < 0) return fail(Code::kInvalidArgument, "fewer than 0 tokens are asked for");
  // The last generated token is never computed.
  const std::size_t n_computed = n_prompt + static_cast<std::size_t>(std::max(n_tokens_max - 1, 0));
  if (n_computed > static_cast<std::size_t>(n_cells)) {
    return fail(
        Code::kInvalidArgument,
        format_text("a prompt of {} tokens and {} to generate do not fit in a context of {}",
                    n_prompt, n_tokens_max, n_cells));
  }
  return {};
}

Result<void> submit(SchedulerState& state, RequestId id, std::string client, int n_prompt,
                    int n_tokens_max, int priority) {
  const auto fits = check_size(state.limits.n_cells,
                               static_cast<std::size_t>(std::max(n_prompt, 0)), n_tokens_max);
  if (!fits) return fits;
  SLIP_CHECK(state.find(id) == nullptr, "a request id is used twice");
  SLIP_CHECK(priority > 0, "a client without turns");
  double& turn_of_client = state.turn_of_client[client];
  // A client that has been away has not saved up turns.
  const double turn = std::max(turn_of_client, state.turn);
  turn_of_client = turn + cost(n_prompt, n_tokens_max) / priority;
  state.sequences.push_back({.id = id,
                             .client = std::move(client),
                             .priority = priority,
                             .turn = turn,
                             .n_prompt = n_prompt,
                             .n_tokens_max = n_tokens_max});
  return {};
}

Step plan(const SchedulerState& state, const Supply& supply) {
  return Planner(state, supply).make();
}

void commit(SchedulerState& state, const Step& step, std::span<const RequestId> ended) {
  for (const RequestId id : step.preempted) {
    Sequence& sequence = *state.find(id);
    sequence.admission_no = 0;
    sequence.n_computed = 0;
  }
  for (const RequestId id : step.admitted) {
    Sequence& sequence = *state.find(id);
    sequence.admission_no = ++state.n_admissions;
    sequence.n_computed = std::min(sequence.n_cached, sequence.n_tokens() - 1);
    state.turn += cost(sequence.n_prompt, sequence.n_tokens_max) / n_shares(state);
  }
  for (const Work& work : step.work) {
    Sequence& sequence = *state.find(work.id);
    SLIP_CHECK(sequence.n_computed == work.first, "work that does not follow what was computed");
    SLIP_CHECK(work.n_accepted <= work.n_drafted, "accepts what was not drafted");
    sequence.n_computed += work.n + work.n_accepted;
    if (work.samples) sequence.n_generated += 1 + work.n_accepted;
  }
  for (const RequestId id : ended) remove(state, id);
}

void remove(SchedulerState& state, RequestId id) {
  const Sequence* found = state.find(id);
  SLIP_CHECK(found != nullptr, "removes a sequence that is not there");
  state.sequences.erase(state.sequences.begin() + (found - state.sequences.data()));
  // A turn in the past tells submit() nothing new.
  std::erase_if(state.turn_of_client,
                [&](const auto& client) { return client.second <= state.turn; });
  if (state.sequences.empty()) state.turn_of_client.clear();
}

}  // namespace slipstream
