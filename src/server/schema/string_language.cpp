#include "server/schema/string_language.h"

#include <algorithm>
#include <utility>

namespace slipstream {
namespace {

std::size_t n_characters(std::string_view utf8) {
  return static_cast<std::size_t>(std::ranges::count_if(
      utf8, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80; }));
}

}  // namespace

Result<Automaton> automaton_of(const StringDemands& demands, WorkBudget& budget) {
  Result<Automaton> all = Automaton::any_text();
  if (demands.length.empty()) return Automaton({{.accepts = false, .edges = {}}});
  for (std::size_t i = 0; all && i < demands.languages.size(); ++i) {
    all = i == 0 ? *demands.languages[0]
                 : combine(*all, *demands.languages[i], Combination::kBoth, budget);
  }
  if (!all || demands.length == CountRange{}) return all;
  const Result<Automaton> length = Automaton::of_length(demands.length.n_min, demands.length.n_max);
  if (!length) return length;
  return combine(*all, *length, Combination::kBoth, budget);
}

bool is_met(const StringDemands& demands, std::string_view utf8) {
  return demands.length.contains(n_characters(utf8)) &&
         std::ranges::all_of(demands.languages,
                             [utf8](const auto& texts) { return texts->contains(utf8); });
}

}  // namespace slipstream
