#include "server/schema/regex_automaton.h"

#include <algorithm>
#include <map>
#include <utility>

#include "server/schema/schema_limits.h"

namespace slipstream {
namespace {

using StateId = std::uint32_t;

// Thompson's construction: edges either take a character or none. Edges for ^ may be followed only
// before the first character, edges for $ only after the last.
struct Nfa {
  enum class When : std::uint8_t { kAlways, kAtStart, kAtEnd };
  struct Jump {
    When when;
    StateId to;
  };
  struct Step {
    CodePointSet set;
    StateId to;
  };
  struct State {
    std::vector<Jump> jumps;
    std::vector<Step> steps;
  };
  std::vector<State> states;
};

class NfaBuilder {
 public:
  // begin loops over any text before a match, end over any text after it.
  Result<Nfa> run(const Regex& regex) {
    const StateId begin = add_state();
    const StateId end = add_state();
    step(begin, CodePointSet::all(), begin);
    step(end, CodePointSet::all(), end);
    build(regex, begin, end);
    if (full_) return too_many_states();
    return std::move(nfa_);
  }

 private:
  // The deterministic automaton may have fewer states than the expression, so this limit is higher.
  static constexpr std::size_t kStatesMax = 4 * kSchemaLimits.automaton_states_max;

  StateId add_state() {
    if (nfa_.states.size() >= kStatesMax) {
      full_ = true;
      return 0;
    }
    nfa_.states.emplace_back();
    return static_cast<StateId>(nfa_.states.size() - 1);
  }
  void jump(StateId from, StateId to, Nfa::When when = Nfa::When::kAlways) {
    nfa_.states[from].jumps.push_back({when, to});
  }
  void step(StateId from, const CodePointSet& set, StateId to) {
    nfa_.states[from].steps.push_back({set, to});
  }

  void build(const Regex& regex, StateId from, StateId to) {
    if (full_) return;
    switch (regex.kind) {
      case Regex::Kind::kSet: step(from, regex.set, to); return;
      case Regex::Kind::kStart: jump(from, to, Nfa::When::kAtStart); return;
      case Regex::Kind::kEnd: jump(from, to, Nfa::When::kAtEnd); return;
      case Regex::Kind::kChoice:
        for (const Regex& part : regex.parts) {
          // Each part has its own states: a loop inside one part must not enter another part.
          const StateId begin = add_state();
          const StateId end = add_state();
          jump(from, begin);
          build(part, begin, end);
          jump(end, to);
        }
        return;
      case Regex::Kind::kSequence: build_sequence(regex, from, to); return;
      case Regex::Kind::kRepeat: build_repeat(regex, from, to); return;
    }
  }

  void build_sequence(const Regex& regex, StateId from, StateId to) {
    StateId at = from;
    for (const Regex& part : regex.parts) {
      const StateId next = add_state();
      build(part, at, next);
      at = next;
    }
    jump(at, to);
  }

  void build_repeat(const Regex& regex, StateId from, StateId to) {
    StateId at = from;
    for (std::uint32_t i = 0; i < regex.n_min && !full_; ++i) {
      const StateId next = add_state();
      build(regex.parts[0], at, next);
      at = next;
    }
    if (!regex.n_max) {
      const StateId loop = add_state();
      const StateId again = add_state();
      jump(at, loop);
      build(regex.parts[0], loop, again);
      jump(again, loop);
      jump(loop, to);
      return;
    }
    for (std::uint32_t i = regex.n_min; i < *regex.n_max && !full_; ++i) {
      const StateId next = add_state();
      jump(at, to);
      build(regex.parts[0], at, next);
      at = next;
    }
    jump(at, to);
  }

  Nfa nfa_;
  bool full_ = false;
};

// The subset construction.
class Determiniser {
 public:
  Determiniser(const Nfa& nfa, WorkBudget& budget)
      : nfa_(nfa), budget_(budget), visited_(nfa.states.size(), 0) {}

  Result<Automaton> run() {
    constexpr StateId kBegin = 0;
    // This subset is not in ids_: the same states later are no longer before the first character.
    add(closure({kBegin}, true, false), true);
    for (std::size_t i = 0; i < subsets_.size(); ++i) {
      if (subsets_.size() > kSchemaLimits.automaton_states_max) return too_many_states();
      if (const Result<void> made = add_edges(i); !made) return std::unexpected(made.error());
    }
    return Automaton(std::move(states_));
  }

 private:
  using Subset = std::vector<StateId>;

  static constexpr StateId kEnd = 1;

  Subset closure(Subset subset, bool at_start, bool at_end) {
    ++round_;
    for (const StateId id : subset) visited_[id] = round_;
    for (std::size_t i = 0; i < subset.size(); ++i) {
      for (const Nfa::Jump& jump : nfa_.states[subset[i]].jumps) {
        const bool open = jump.when == Nfa::When::kAlways ||
                          (jump.when == Nfa::When::kAtStart ? at_start : at_end);
        if (open && std::exchange(visited_[jump.to], round_) != round_) subset.push_back(jump.to);
      }
    }
    // After a match, the rest of the text does not matter.
    if (!at_end && visited_[kEnd] == round_) return {kEnd};
    std::ranges::sort(subset);
    return subset;
  }

  void add(Subset subset, bool at_start) {
    const Subset last = closure(subset, at_start, true);
    states_.push_back({.accepts = std::ranges::binary_search(last, kEnd), .edges = {}});
    subsets_.push_back(std::move(subset));
  }

  // `kernel` is the set of states that a character leads to, before its closure.
  Result<StateId> state_of(const Subset& kernel) {
    if (const auto known = of_kernel_.find(kernel); known != of_kernel_.end()) return known->second;
    Subset subset = closure(kernel, false, false);
    if (const Result<void> spent = budget_.spend(2 * subset.size()); !spent) {
      return std::unexpected(spent.error());
    }
    const auto next = static_cast<StateId>(subsets_.size());
    const auto [found, is_new] = ids_.try_emplace(subset, next);
    if (is_new) add(std::move(subset), false);
    of_kernel_[kernel] = found->second;
    return found->second;
  }

  Result<void> add_edges(std::size_t from) {
    struct Target {
      char32_t at;
      bool begins;
      StateId to;
    };
    std::vector<Target> changes;
    for (const StateId id : subsets_[from]) {
      for (const Nfa::Step& step : nfa_.states[id].steps) {
        for (const CodePointRange& range : step.set.ranges()) {
          changes.push_back({range.first, true, step.to});
          changes.push_back({range.last + 1, false, step.to});
        }
      }
    }
    std::ranges::sort(changes, {}, &Target::at);
    std::map<StateId, int> active;  // how many ranges lead to the state at this point
    for (std::size_t i = 0; i < changes.size();) {
      const char32_t at = changes[i].at;
      for (; i < changes.size() && changes[i].at == at; ++i) {
        int& n = active[changes[i].to];
        n += changes[i].begins ? 1 : -1;
        if (n == 0) active.erase(changes[i].to);
      }
      if (const Result<void> spent = budget_.spend(1 + 4 * active.size()); !spent) return spent;
      if (active.empty()) continue;
      Subset subset;
      for (const auto& [to, n] : active) subset.push_back(to);
      const Result<StateId> to = state_of(subset);
      if (!to) return std::unexpected(to.error());
      states_[from].add_edge({at, changes[i].at - 1}, *to);
    }
    return {};
  }

  const Nfa& nfa_;
  WorkBudget& budget_;
  std::vector<std::uint64_t> visited_;
  std::uint64_t round_ = 0;
  std::map<Subset, StateId> ids_;
  std::map<Subset, StateId> of_kernel_;
  std::vector<Subset> subsets_;
  std::vector<Automaton::State> states_;
};

}  // namespace

Result<Automaton> automaton_of(const Regex& regex, WorkBudget& budget) {
  const Result<Nfa> nfa = NfaBuilder().run(regex);
  if (!nfa) return std::unexpected(nfa.error());
  return Determiniser(*nfa, budget).run();
}

Result<Automaton> automaton_of_pattern(std::string_view pattern, WorkBudget& budget) {
  const Result<Regex> regex = parse_regex(pattern);
  if (!regex) return std::unexpected(regex.error());
  return automaton_of(*regex, budget);
}

}  // namespace slipstream
