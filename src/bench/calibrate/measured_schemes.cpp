#include <algorithm>

#include "bench/calibrate/profile.h"

namespace slipstream::calibrate {

std::vector<SchemeEvidence> measured_schemes(const Evidence& evidence) {
  std::vector<SchemeEvidence> schemes;
  const auto add = [&](const SchemeEvidence& scheme) {
    if (!std::ranges::contains(schemes, scheme.kv, &SchemeEvidence::kv)) schemes.push_back(scheme);
  };
  // A trial covers every depth, the probe only the first.
  for (const Trial& trial : evidence.trials) {
    add({.kv = trial.kv, .kl = trial.kl, .same_top = trial.same_top});
  }
  add(evidence.probe.finest);
  std::ranges::for_each(evidence.probe.schemes, add);
  std::ranges::stable_sort(schemes, {}, &SchemeEvidence::kl);
  return schemes;
}

}  // namespace slipstream::calibrate
