#include <algorithm>

#include "base/format.h"
#include "bench/calibrate/calibrate.h"
#include "bench/quality/verdict.h"

namespace slipstream::calibrate {

std::string objection_to(const quality::ArmResult& found, const quality::ArmResult& f16,
                         double budget, Trial& trial) {
  // A budget above "fine" also allows the top token to change.
  const bool is_strict = budget <= quality::kFineUpTo.kl_mean;
  const quality::Thresholds limit{
      .kl_mean = budget,
      .same_top = (is_strict ? quality::kFineUpTo : quality::kBrokenFrom).same_top};
  std::string objection;
  for (const quality::DepthFigures& at : found.divergence) {
    trial.kl = std::max(trial.kl, at.divergence.kl_mean);
    trial.same_top = std::min(trial.same_top, at.divergence.same_top);
    if (at.decoded.n_tokens > 0) {
      trial.kl = std::max(trial.kl, at.decoded.kl_mean);
      trial.same_top = std::min(trial.same_top, at.decoded.same_top);
    }
    if (objection.empty()) objection = quality::what_is_past(limit, at);
  }
  for (const quality::NeedleCount& count : quality::count_needles(found.needles, f16.needles)) {
    trial.n_needles += count.n_base;
    trial.n_needles_found += count.n_kept;
  }
  const int n_lost = trial.n_needles - trial.n_needles_found;
  if (objection.empty() && n_lost > 0) {
    objection = format_text("{} of {} needles that f16 finds {} lost", n_lost, trial.n_needles,
                            n_lost == 1 ? "is" : "are");
  }
  return objection;
}

bool lost_needles_only(const Trial& trial) {
  return !trial.objection.empty() && trial.n_needles_found < trial.n_needles;
}

}  // namespace slipstream::calibrate
