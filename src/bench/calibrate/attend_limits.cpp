#include "bench/calibrate/attend_limits.h"

#include <algorithm>

#include "base/format.h"
#include "bench/quality/verdict.h"
#include "contract/scheme.h"

namespace slipstream::calibrate {
namespace {

DepthEvidence& at_depth(std::vector<DepthEvidence>& at, int depth) {
  const auto known = std::ranges::find(at, depth, &DepthEvidence::depth);
  return known == at.end() ? at.emplace_back(DepthEvidence{.depth = depth}) : *known;
}

}  // namespace

std::vector<std::int64_t> attend_limits(int depth_max) {
  std::vector<std::int64_t> limits;
  for (std::int64_t n = turbo::kAttendMin; n <= depth_max / 2; n *= 2) limits.push_back(n);
  return limits;
}

void add_findings(const quality::ArmResult& found, const quality::ArmResult& f16,
                  std::vector<DepthEvidence>& at) {
  for (const quality::DepthFigures& figures : found.divergence) {
    DepthEvidence& here = at_depth(at, figures.depth);
    here.kl = figures.divergence.kl_mean;
    here.same_top = figures.divergence.same_top;
    if (figures.decoded.n_tokens == 0) continue;
    here.kl_decoded = figures.decoded.kl_mean;
    here.same_top_decoded = figures.decoded.same_top;
  }
  for (const quality::NeedleCount& count : quality::count_needles(found.needles, f16.needles)) {
    DepthEvidence& here = at_depth(at, count.depth);
    here.n_needles = count.n_base;
    here.n_needles_found = count.n_kept;
  }
}

std::string attend_reason(const AttendEvidence& attend) {
  if (attend.trials.size() < 2) return "No limit was tried: only keys in codes can have one.";
  const AttendTrial& last = attend.trials.back();
  if (attend.chosen.empty()) {
    return format_text(
        "All tokens have to be read. The largest limit of use at a depth of {} is {}: {}.",
        attend.depth_max, last.attend, last.objection);
  }
  std::string text;
  if (attend.trials.size() > 2) {
    const AttendTrial& smaller = attend.trials[attend.trials.size() - 2];
    text = format_text("A smaller limit, {}, was tried: {}. ", smaller.attend, smaller.objection);
  }
  const bool has_needles = std::ranges::any_of(last.at, [&](const DepthEvidence& at) {
    return at.depth == attend.depth_max && at.n_needles > 0;
  });
  if (!has_needles) {
    text += "Only divergences speak for it: f16 finds no needle at the deepest depth. ";
  }
  return text + format_text("This was measured to a depth of {} tokens: nothing is known beyond.",
                            attend.depth_max);
}

}  // namespace slipstream::calibrate
