#include <algorithm>

#include "base/format.h"
#include "bench/calibrate/calibrate.h"
#include "bench/quality/verdict.h"

namespace slipstream::calibrate {
namespace {

// Those that f16 finds, and of these the ones that are found here too.
void count_needles(const quality::ArmResult& found, const quality::ArmResult& f16, Trial& trial) {
  const std::size_t n = std::min(found.needles.size(), f16.needles.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (!f16.needles[i].right) continue;
    ++trial.n_needles;
    if (found.needles[i].right) ++trial.n_needles_found;
  }
}

}  // namespace

std::string objection_to(const quality::ArmResult& found, const quality::ArmResult& f16,
                         double budget, Trial& trial) {
  // Who allows more than "fine" has said that the top token may change, too.
  const double same_top_min = budget <= quality::kFineUpTo.kl_mean ? quality::kFineUpTo.same_top
                                                                   : quality::kBrokenFrom.same_top;
  std::string objection;
  for (const quality::DepthFigures& at : found.divergence) {
    const quality::DivergenceFigures& figures = at.divergence;
    trial.kl = std::max(trial.kl, figures.kl_mean);
    trial.same_top = std::min(trial.same_top, figures.same_top);
    if (!objection.empty()) continue;
    if (!(figures.kl_mean <= budget)) {  // so that a NaN is past it
      objection = format_text("mean KL divergence {:.4f} at depth {} is above the budget of {}",
                              figures.kl_mean, at.depth, budget);
    } else if (!(figures.same_top >= same_top_min)) {
      objection = format_text("the same top token in {:.1f} % at depth {} is below {:.0f} %",
                              100 * figures.same_top, at.depth, 100 * same_top_min);
    }
  }
  count_needles(found, f16, trial);
  const int n_lost = trial.n_needles - trial.n_needles_found;
  if (objection.empty() && n_lost > 0) {
    objection = format_text("{} of {} needles that f16 finds {} lost", n_lost, trial.n_needles,
                            n_lost == 1 ? "is" : "are");
  }
  return objection;
}

}  // namespace slipstream::calibrate
