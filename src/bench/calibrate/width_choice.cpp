#include "bench/calibrate/width_choice.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

#include "base/check.h"
#include "base/format.h"

namespace slipstream::calibrate {
namespace {

// Divergences are counted in this many shares of the budget, rounded up. Rounding costs at most a
// ten thousandth of the budget for the keys and for the values of each group.
constexpr int kBudgetSteps = 10000;

using OptionList = std::vector<WidthOption>;

int steps_of(const WidthOption& option, double budget) {
  if (option.kl <= 0) return 0;
  const double steps = std::ceil(option.kl / budget * kBudgetSteps);
  return steps <= kBudgetSteps ? static_cast<int>(steps) : kBudgetSteps + 1;  // too many
}

// The fewest bytes for each number of steps, and the option of the last list that achieves them.
struct Row {
  std::vector<double> bytes;
  std::vector<std::uint8_t> option_idx;
};

Row add_choice(const std::vector<double>& before, const OptionList& options, double budget) {
  Row row{.bytes = std::vector<double>(before.size(), std::numeric_limits<double>::infinity()),
          .option_idx = std::vector<std::uint8_t>(before.size())};
  for (std::size_t idx = 0; idx < options.size(); ++idx) {
    const auto cost = static_cast<std::size_t>(steps_of(options[idx], budget));
    for (std::size_t used = cost; used < before.size(); ++used) {
      const double bytes = before[used - cost] + options[idx].bytes_per_token;
      if (bytes >= row.bytes[used]) continue;
      row.bytes[used] = bytes;
      row.option_idx[used] = static_cast<std::uint8_t>(idx);
    }
  }
  return row;
}

// Chooses an option from each list so that all together take the fewest bytes: a knapsack problem.
std::vector<std::size_t> choose_options(const std::vector<const OptionList*>& lists,
                                        double budget) {
  std::vector<std::size_t> chosen(lists.size(), 0);
  if (!(budget > 0)) return chosen;
  std::vector<Row> rows;
  std::vector<double> before(kBudgetSteps + 1, 0.0);
  for (const OptionList* options : lists) {
    rows.push_back(add_choice(before, *options, budget));
    before = rows.back().bytes;
  }
  // Of equally small choices, takes the one closest to f16.
  auto used = static_cast<std::size_t>(std::ranges::min_element(before) - before.begin());
  if (std::isinf(before[used])) return chosen;  // even the widest options exceed the budget
  for (std::size_t i = lists.size(); i-- > 0;) {
    chosen[i] = rows[i].option_idx[used];
    used -= static_cast<std::size_t>(steps_of((*lists[i])[chosen[i]], budget));
  }
  return chosen;
}

}  // namespace

WidthChoice choose_widths(std::span<const LayerGroup> groups, double budget) {
  std::vector<const OptionList*> lists;
  for (const LayerGroup& group : groups) {
    SLIP_CHECK(!group.keys.empty() && !group.values.empty(), "a group of layers without widths");
    lists.push_back(&group.keys);
    lists.push_back(&group.values);
  }
  const std::vector<std::size_t> chosen = choose_options(lists, budget);
  WidthChoice choice;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const WidthOption& keys = groups[i].keys[chosen[2 * i]];
    const WidthOption& values = groups[i].values[chosen[2 * i + 1]];
    choice.groups.push_back({.first_layer = groups[i].first_layer,
                             .last_layer = groups[i].last_layer,
                             .bits = {.keys = keys.bits, .values = values.bits},
                             .kl = keys.kl + values.kl});
    choice.kl += choice.groups.back().kl;
  }
  return choice;
}

std::string scheme_of(turbo::Bits bits) {
  if (bits.keys == bits.values) return format_text("turbo{}", bits.keys);
  return format_text("turbo{}v{}", bits.keys, bits.values);
}

std::string scheme_of(std::span<const ChosenGroup> groups) {
  SLIP_CHECK(!groups.empty(), "a scheme of no layers");
  std::map<std::string, int> n_layers;
  for (const ChosenGroup& group : groups) {
    n_layers[scheme_of(group.bits)] += group.last_layer - group.first_layer + 1;
  }
  const auto most =
      std::ranges::max_element(n_layers, {}, [](const auto& entry) { return entry.second; });
  std::string scheme = most->first;
  for (std::size_t i = 0; i < groups.size();) {
    std::size_t end = i + 1;
    while (end < groups.size() && groups[end].bits == groups[i].bits) ++end;
    const std::string name = scheme_of(groups[i].bits);
    const int first = groups[i].first_layer;
    const int last = groups[end - 1].last_layer;
    if (name != most->first) {
      scheme += first == last ? format_text(",{}={}", first, name)
                              : format_text(",{}-{}={}", first, last, name);
    }
    i = end;
  }
  return scheme;
}

}  // namespace slipstream::calibrate
