#include "bench/calibrate/report.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "bench/report/text_table.h"

namespace slipstream::calibrate {
namespace {

std::string layers_text(int first, int last) {
  return first == last ? std::to_string(first) : format_text("{}-{}", first, last);
}

// The share of the budget that a group takes.
std::string share_bar(double kl, double budget) {
  constexpr double kWidth = 20;
  const double share = budget > 0 ? std::clamp(kl / budget, 0.0, 1.0) : 0;
  return std::string(static_cast<std::size_t>(std::ceil(share * kWidth)), '#');
}

// The cost of fewer bits: "0.0004", or "-" if it was not measured.
std::string kl_text(const std::vector<WidthOption>& options, int bits) {
  const auto found = std::ranges::find(options, bits, &WidthOption::bits);
  return found == options.end() ? "-" : format_text("{:.5f}", found->kl);
}

std::string layer_table(const Evidence& evidence) {
  bench::TextTable table({"layers", "K bits", "V bits", "KL", "K at 4", "K at 3", "K at 2",
                          "V at 4", "V at 3", "V at 2", "share of the budget"});
  for (std::size_t i = 0; i < evidence.probe.groups.size(); ++i) {
    const LayerGroup& group = evidence.probe.groups[i];
    const bool is_chosen = i < evidence.groups.size();  // not if f16 was chosen
    const ChosenGroup chosen = is_chosen ? evidence.groups[i] : ChosenGroup{};
    table.add({layers_text(group.first_layer, group.last_layer),
               is_chosen ? std::to_string(chosen.bits.keys) : "16",
               is_chosen ? std::to_string(chosen.bits.values) : "16",
               format_text("{:.5f}", chosen.kl), kl_text(group.keys, 4), kl_text(group.keys, 3),
               kl_text(group.keys, 2), kl_text(group.values, 4), kl_text(group.values, 3),
               kl_text(group.values, 2), share_bar(chosen.kl, evidence.budget)});
  }
  return table.plain();
}

// "-" if no needles were asked for: f16 finds none, or there was another objection already.
std::string needles_text(const Trial& trial) {
  if (trial.n_needles == 0) return "-";
  return format_text("{} of {}", trial.n_needles_found, trial.n_needles);
}

std::string trial_table(const Evidence& evidence) {
  bench::TextTable table({"tried", "KL expected", "KL", "same top-1", "needles", ""});
  for (const Trial& trial : evidence.trials) {
    const bool is_taken = trial.kv == evidence.chosen && trial.objection.empty();
    table.add({trial.kv, format_text("{:.4f}", trial.kl_expected), format_text("{:.4f}", trial.kl),
               format_text("{:.1f} %", 100 * trial.same_top), needles_text(trial),
               is_taken ? "taken" : trial.objection});
  }
  return table.plain();
}

std::string needles_text(const AttendTrial& trial) {
  Trial all;
  for (const DepthEvidence& at : trial.at) {
    all.n_needles += at.n_needles;
    all.n_needles_found += at.n_needles_found;
  }
  return needles_text(all);
}

// The curve: what fewer tokens cost at each depth.
std::string attend_table(const AttendEvidence& attend) {
  std::vector<std::string> heading = {"reads"};
  for (const DepthEvidence& at : attend.trials.front().at) {
    heading.push_back(format_text("KL at {}", at.depth));
    heading.emplace_back("decoded");
  }
  heading.insert(heading.end(), {"needles", ""});
  bench::TextTable table(heading);
  for (const AttendTrial& trial : attend.trials) {
    std::vector<std::string> row = {trial.attend == 0 ? "all" : std::to_string(trial.attend)};
    for (const DepthEvidence& at : trial.at) {
      row.push_back(format_text("{:.4f}", at.kl));
      row.push_back(format_text("{:.4f}", at.kl_decoded));
    }
    row.push_back(needles_text(trial));
    row.push_back(trial.kv == attend.chosen ? "taken" : trial.objection);
    table.add(std::move(row));
  }
  return table.plain();
}

std::string attend_text(const AttendEvidence& attend) {
  std::string text;
  if (attend.trials.size() > 1) {
    text = format_text(
        "What reading a part of the tokens costs: mean KL divergence from f16, and that of tokens "
        "read one at a time\n{}\n",
        attend_table(attend));
  }
  if (!attend.chosen.empty()) {
    text += format_text("{}: {:.0f} bytes per token\n", attend.chosen, attend.bytes_per_token);
  }
  return text + format_text("Why: {}\n", attend.reason);
}

}  // namespace

std::string report_for_terminal(const Evidence& evidence) {
  const KeyFitting& keys = evidence.probe.key_fitting;
  std::string text = keys.n_layers == 0 ? std::string("Keys of this model cannot be fitted.\n")
                                        : format_text("Keys of {} layers fitted from {} tokens.\n",
                                                      keys.n_layers, keys.n_tokens);
  text += format_text(
      "What fewer bits cost: mean KL divergence from f16, other layers at 8 bits ({} tokens at "
      "depth "
      "{})\n{}\n",
      evidence.probe.n_tokens, evidence.probe.depth, layer_table(evidence));
  text += format_text("{}\n", trial_table(evidence));
  text += format_text(
      "{}: {:.0f} bytes per token; f16 takes {:.0f} ({:.2f} times as many), turbo8v4 "
      "{:.0f} ({:.2f} times)\n",
      evidence.chosen, evidence.bytes_per_token, evidence.bytes_per_token_f16,
      evidence.bytes_per_token_f16 / evidence.bytes_per_token, evidence.bytes_per_token_turbo8v4,
      evidence.bytes_per_token_turbo8v4 / evidence.bytes_per_token);
  text += format_text("Why: {}\n", evidence.reason);
  if (evidence.attend) text += "\n" + attend_text(*evidence.attend);
  for (const std::string& note : evidence.notes) text += format_text("Note: {}\n", note);
  return text;
}

}  // namespace slipstream::calibrate
