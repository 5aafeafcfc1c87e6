#include "server/schema/automaton.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/utf8.h"
#include "server/schema/schema_limits.h"

namespace slipstream {
namespace {

using State = Automaton::State;
using StateId = std::uint32_t;
constexpr StateId kNowhere = UINT32_MAX;  // the state after a character without an edge

std::vector<Automaton::Edge> edges_for_any(StateId to) {
  std::vector<Automaton::Edge> edges;
  for (const CodePointRange& range : CodePointSet::all().ranges()) edges.push_back({range, to});
  return edges;
}

StateId next_state(const State& state, char32_t code_point) {
  const auto edge = std::ranges::lower_bound(state.edges, code_point, {},
                                             [](const auto& e) { return e.range.last; });
  return edge != state.edges.end() && edge->range.first <= code_point ? edge->to : kNowhere;
}

Result<std::u32string> code_points_of(std::string_view utf8) {
  std::u32string all;
  while (!utf8.empty()) {
    const Utf8Char character = decode_utf8(utf8);
    if (character.kind != Utf8Char::Kind::kValid) {
      return fail(Code::kInvalidArgument, "a text that is not UTF-8");
    }
    all += character.code_point;
    utf8.remove_prefix(character.n_bytes);
  }
  return all;
}

// Walks two automata at once: a state is a pair of states.
class Product {
 public:
  Product(const Automaton& first, const Automaton& second, Combination combination)
      : first_(first), second_(second), combination_(combination) {}

  Result<Automaton> run(WorkBudget& budget) {
    (void)state_of({0, 0});
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (pairs_.size() > kSchemaLimits.automaton_states_max) return too_many_states();
      const std::vector<char32_t> cuts = cuts_of(pairs_[i]);
      if (const Result<void> spent = budget.spend(1 + cuts.size()); !spent) {
        return std::unexpected(spent.error());
      }
      for (std::size_t c = 0; c + 1 < cuts.size(); ++c) add_edge(i, {cuts[c], cuts[c + 1] - 1});
    }
    return Automaton(std::move(states_));
  }

 private:
  using Pair = std::pair<StateId, StateId>;

  bool can_end(Pair pair) const {
    const bool in_first = pair.first != kNowhere && first_.states()[pair.first].accepts;
    const bool in_second = pair.second != kNowhere && second_.states()[pair.second].accepts;
    switch (combination_) {
      case Combination::kBoth: return in_first && in_second;
      case Combination::kEither: return in_first || in_second;
      case Combination::kFirstOnly: return in_first && !in_second;
    }
    std::unreachable();
  }

  bool is_dead(Pair pair) const {
    const bool first_dead = pair.first == kNowhere;
    const bool second_dead = pair.second == kNowhere;
    switch (combination_) {
      case Combination::kBoth: return first_dead || second_dead;
      case Combination::kEither: return first_dead && second_dead;
      case Combination::kFirstOnly: return first_dead;
    }
    std::unreachable();
  }

  StateId state_of(Pair pair) {
    const auto [found, is_new] = ids_.try_emplace(pair, static_cast<StateId>(pairs_.size()));
    if (is_new) {
      pairs_.push_back(pair);
      states_.push_back({.accepts = can_end(pair), .edges = {}});
    }
    return found->second;
  }

  // The code points where an edge of either state begins or has just ended. Between two cuts both
  // automata behave the same.
  std::vector<char32_t> cuts_of(Pair pair) const {
    std::vector<char32_t> cuts;
    const auto add = [&cuts](const State& state) {
      for (const Automaton::Edge& edge : state.edges) {
        cuts.push_back(edge.range.first);
        cuts.push_back(edge.range.last + 1);
      }
    };
    if (pair.first != kNowhere) add(first_.states()[pair.first]);
    if (pair.second != kNowhere) add(second_.states()[pair.second]);
    std::ranges::sort(cuts);
    cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
    return cuts;
  }

  void add_edge(std::size_t from, CodePointRange range) {
    const Pair pair = pairs_[from];
    const auto step = [&range](const Automaton& automaton, StateId state) {
      return state == kNowhere ? kNowhere : next_state(automaton.states()[state], range.first);
    };
    const Pair next{step(first_, pair.first), step(second_, pair.second)};
    if (is_dead(next)) return;
    const StateId to = state_of(next);  // may add a state
    states_[from].add_edge(range, to);
  }

  const Automaton& first_;
  const Automaton& second_;
  Combination combination_;
  std::map<Pair, StateId> ids_;
  std::vector<Pair> pairs_;
  std::vector<State> states_;
};

}  // namespace

void Automaton::State::add_edge(CodePointRange range, std::uint32_t to) {
  if (!edges.empty() && edges.back().to == to && edges.back().range.last + 1 == range.first) {
    edges.back().range.last = range.last;
  } else {
    edges.push_back({range, to});
  }
}

Automaton::Automaton(std::vector<State> states) {
  const std::vector<bool> useful = states_that_can_end(states);
  std::vector<StateId> moved(states.size(), kNowhere);
  StateId n_kept = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (i == 0 || useful[i]) moved[i] = n_kept++;
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (moved[i] == kNowhere) continue;
    std::erase_if(states[i].edges, [&useful](const Edge& edge) { return !useful[edge.to]; });
    for (Edge& edge : states[i].edges) edge.to = moved[edge.to];
    states_.push_back(std::move(states[i]));
  }
}

std::vector<bool> Automaton::states_that_can_end(const std::vector<State>& states) {
  std::vector<std::vector<StateId>> sources(states.size());
  std::vector<bool> useful(states.size());
  std::vector<StateId> todo;
  for (StateId id = 0; id < states.size(); ++id) {
    for (const Edge& edge : states[id].edges) sources[edge.to].push_back(id);
    if (states[id].accepts) todo.push_back(id);
    useful[id] = states[id].accepts;
  }
  while (!todo.empty()) {
    const StateId id = todo.back();
    todo.pop_back();
    for (const StateId source : sources[id]) {
      if (useful[source]) continue;
      useful[source] = true;
      todo.push_back(source);
    }
  }
  return useful;
}

Automaton Automaton::any_text() {
  return Automaton({{.accepts = true, .edges = edges_for_any(0)}});
}

Result<Automaton> Automaton::of_length(std::size_t n_min, std::optional<std::size_t> n_max) {
  const std::size_t n_last = n_max.value_or(n_min);
  if (n_last >= kSchemaLimits.automaton_states_max) return too_many_states();
  std::vector<State> states(n_last + 1);
  for (std::size_t n = 0; n <= n_last; ++n) {
    states[n].accepts = n >= n_min;
    if (n < n_last) states[n].edges = edges_for_any(static_cast<StateId>(n + 1));
  }
  if (!n_max) states[n_last].edges = edges_for_any(static_cast<StateId>(n_last));
  return Automaton(std::move(states));
}

Result<Automaton> Automaton::of_texts(const std::vector<std::string>& texts) {
  std::vector<std::map<char32_t, StateId>> next(1);
  std::vector<bool> accepts(1);
  for (const std::string& text : texts) {
    StateId at = 0;
    const Result<std::u32string> code_points = code_points_of(text);
    if (!code_points) return std::unexpected(code_points.error());
    for (const char32_t code_point : *code_points) {
      const auto [found, is_new] =
          next[at].try_emplace(code_point, static_cast<StateId>(next.size()));
      at = found->second;
      if (!is_new) continue;
      if (next.size() == kSchemaLimits.automaton_states_max) return too_many_states();
      next.emplace_back();
      accepts.push_back(false);
    }
    accepts[at] = true;
  }
  std::vector<State> states(next.size());
  for (std::size_t i = 0; i < next.size(); ++i) {
    states[i].accepts = accepts[i];
    for (const auto& [code_point, to] : next[i]) {
      states[i].edges.push_back({{code_point, code_point}, to});
    }
  }
  return Automaton(std::move(states));
}

// Knuth, Morris and Pratt: a state is the longest suffix of the text so far that begins one
// of the words.
Result<Automaton> Automaton::without(const std::vector<std::string>& texts) {
  std::vector<std::u32string> words;
  std::map<std::u32string, StateId> ids = {{U"", 0}};
  std::set<char32_t> letters;
  for (const std::string& text : texts) {
    Result<std::u32string> word = code_points_of(text);
    if (!word) return std::unexpected(word.error());
    for (std::size_t n = 1; n < word->size(); ++n) {
      ids.try_emplace(word->substr(0, n), static_cast<StateId>(ids.size()));
    }
    letters.insert(word->begin(), word->end());
    words.push_back(std::move(*word));
  }
  if (ids.size() > kSchemaLimits.automaton_states_max) return too_many_states();
  // Characters that occur in no word lead back to the start.
  std::vector<CodePointRange> taken;
  for (const char32_t letter : letters) taken.push_back({letter, letter});
  const CodePointSet others = CodePointSet(std::move(taken)).complement();
  std::vector<State> states(ids.size());
  for (const auto& [read, id] : ids) {
    states[id].accepts = true;
    std::vector<Edge> edges;
    for (const CodePointRange& range : others.ranges()) edges.push_back({range, 0});
    for (const char32_t letter : letters) {
      std::u32string end = read + letter;
      const auto ends = [&end](const std::u32string& word) { return end.ends_with(word); };
      if (std::ranges::any_of(words, ends)) continue;
      while (!ids.contains(end)) end.erase(0, 1);
      edges.push_back({{letter, letter}, ids[end]});
    }
    std::ranges::sort(edges, {}, [](const Edge& edge) { return edge.range.first; });
    for (const Edge& edge : edges) states[id].add_edge(edge.range, edge.to);
  }
  return Automaton(std::move(states));
}

bool Automaton::contains(std::string_view utf8) const {
  StateId at = 0;
  while (!utf8.empty() && at != kNowhere) {
    const Utf8Char character = decode_utf8(utf8);
    if (character.kind != Utf8Char::Kind::kValid) return false;
    at = next_state(states_[at], character.code_point);
    utf8.remove_prefix(character.n_bytes);
  }
  return at != kNowhere && states_[at].accepts;
}

Result<Automaton> combine(const Automaton& first, const Automaton& second, Combination combination,
                          WorkBudget& budget) {
  return Product(first, second, combination).run(budget);
}

std::unexpected<Error> too_many_states() {
  return fail(Code::kUnsupported, format_text("needs an automaton of more than {} states",
                                              kSchemaLimits.automaton_states_max));
}

}  // namespace slipstream
