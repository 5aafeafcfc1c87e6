#include <algorithm>

#include "base/format.h"
#include "bench/calibrate/profile.h"
#include "bench/quality/verdict.h"

namespace slipstream::calibrate {
namespace {

constexpr quality::Thresholds kLimit = quality::kBrokenFrom;

std::optional<std::string> past_limit(std::string_view kv, double kl, double same_top) {
  if (!(kl <= kLimit.kl_mean)) {
    return format_text(
        "calibration measured {} at a mean KL divergence of {:.3f} from f16, above {}", kv, kl,
        kLimit.kl_mean);
  }
  if (!(same_top >= kLimit.same_top)) {
    return format_text("calibration measured {} with f16's top token in {:.1f} %, below {:.0f} %",
                       kv, 100 * same_top, 100 * kLimit.same_top);
  }
  return std::nullopt;
}

std::optional<std::string> past_limit_at_any(const AttendTrial& trial) {
  for (const DepthEvidence& at : trial.at) {
    auto past = past_limit(trial.kv, at.kl, at.same_top);
    if (!past) past = past_limit(trial.kv, at.kl_decoded, at.same_top_decoded);
    if (past) return past;
  }
  return std::nullopt;
}

// The least that a width is known to add: fewer bits than were measured are no better.
double kl_at_least(const std::vector<WidthOption>& options, int bits) {
  double kl = 0;
  for (const WidthOption& option : options) {
    if (bits != 0 && option.bits >= bits) kl = std::max(kl, option.kl);
  }
  return kl;
}

// A group counts with the widest of its layers.
turbo::Bits widest(const KvScheme& scheme, const LayerGroup& group) {
  const auto wider = [](int a, int b) { return a == 0 || b == 0 ? 0 : std::max(a, b); };
  turbo::Bits bits = scheme.bits_of_layer(group.first_layer);
  for (int layer = group.first_layer; layer <= group.last_layer; ++layer) {
    const turbo::Bits other = scheme.bits_of_layer(layer);
    bits = {.keys = wider(bits.keys, other.keys), .values = wider(bits.values, other.values)};
  }
  return bits;
}

}  // namespace

std::optional<std::string> why_broken(const Evidence& evidence, const KvScheme& scheme) {
  for (const Trial& trial : evidence.trials) {
    if (trial.kv == scheme.name()) return past_limit(trial.kv, trial.kl, trial.same_top);
  }
  if (evidence.attend) {
    for (const AttendTrial& trial : evidence.attend->trials) {
      if (trial.kv == scheme.name()) return past_limit_at_any(trial);
    }
  }
  for (const SchemeEvidence& known : evidence.probe.schemes) {
    if (known.kv == scheme.name()) return past_limit(known.kv, known.kl, known.same_top);
  }
  if (!scheme.is_turbo()) return std::nullopt;
  double kl = 0;
  for (const LayerGroup& group : evidence.probe.groups) {
    const turbo::Bits bits = widest(scheme, group);
    kl += kl_at_least(group.keys, bits.keys) + kl_at_least(group.values, bits.values);
  }
  if (kl <= kLimit.kl_mean) return std::nullopt;
  return format_text(
      "what calibration measured of single layers adds up to a mean KL divergence of "
      "{:.3f} from f16 or more for {}, above {}",
      kl, scheme.name(), kLimit.kl_mean);
}

}  // namespace slipstream::calibrate
