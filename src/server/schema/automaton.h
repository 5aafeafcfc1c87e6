// Automaton: a regular set of texts, as a deterministic automaton over code points. All demands on
// a string (any number of `pattern`, `format`, length and excluded names) become one automaton, so
// that "all of them at once" and "no text is left" are exact.
//
// Threads: immutable.
// Errors:  kUnsupported if an automaton would have more than SchemaLimits::automaton_states_max.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/schema/code_point_set.h"
#include "server/schema/work_budget.h"

namespace slipstream {

class Automaton {
 public:
  struct Edge {
    CodePointRange range;
    std::uint32_t to;
  };
  struct State {
    bool accepts = false;
    // The ranges are disjoint and ascending. A text with any other character here is not
    // in the set.
    std::vector<Edge> edges;

    // Adds an edge behind all others. An edge that continues the last one to the same state is
    // merged into it.
    void add_edge(CodePointRange range, std::uint32_t to);
  };

  // Texts begin at state 0. States from which no accepting state can be reached are removed.
  explicit Automaton(std::vector<State> states);
  [[nodiscard]] static Automaton any_text();
  [[nodiscard]] static Result<Automaton> of_length(std::size_t n_min,
                                                   std::optional<std::size_t> n_max);
  [[nodiscard]] static Result<Automaton> of_texts(const std::vector<std::string>& texts);
  // Texts that contain none of these.
  [[nodiscard]] static Result<Automaton> without(const std::vector<std::string>& texts);

  [[nodiscard]] const std::vector<State>& states() const { return states_; }
  [[nodiscard]] bool empty() const { return !states_[0].accepts && states_[0].edges.empty(); }
  [[nodiscard]] bool contains(std::string_view utf8) const;

 private:
  [[nodiscard]] static std::vector<bool> states_that_can_end(const std::vector<State>& states);

  std::vector<State> states_;
};

enum class Combination { kBoth, kEither, kFirstOnly };

// Texts in both sets, in either, or in the first but not the second.
[[nodiscard]] Result<Automaton> combine(const Automaton& first, const Automaton& second,
                                        Combination combination, WorkBudget& budget);

// The error for an automaton that would be too large.
[[nodiscard]] std::unexpected<Error> too_many_states();

}  // namespace slipstream
