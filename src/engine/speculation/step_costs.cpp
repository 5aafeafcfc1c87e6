#include "engine/speculation/step_costs.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace slipstream {
namespace {

// How far a measurement moves what is known.
constexpr double kShorter = 0.5;
constexpr double kLonger = 0.1;
// A time that is this much longer than what is known, or guessed, is measured twice.
constexpr double kSurprise = 1.25;
// The guess for drafts of another length: as many drafted tokens as there are sequences lengthen the
// step by this much.
constexpr double kGuess = 0.1;
// Contexts shorter than this cost next to nothing to read.
constexpr std::int64_t kShortContext = 1024;

}  // namespace

std::pair<int, int> StepCosts::key_of(Kind kind) {
  const auto n = static_cast<std::uint64_t>(std::max<std::int64_t>(kind.n_context, 0));
  return {kind.n_sequences, std::bit_width(n / kShortContext)};
}

// The first length that is not less. Longer than the longest counts as it.
std::size_t StepCosts::class_of(int n_drafted) {
  const auto* found = std::ranges::lower_bound(kLengths, n_drafted);
  return std::min(static_cast<std::size_t>(found - kLengths.begin()), kLengths.size() - 1);
}

// In pauses after which it is doubted.
double StepCosts::age(const Cost& cost) const {
  return static_cast<double>(n_steps_ - cost.measured_at) / cost.doubted_after;
}

bool StepCosts::is_known(const Cost& cost, int patience) const {
  return cost.measured_at > 0 && !cost.is_doubted && age(cost) <= patience;
}

bool StepCosts::wants_plain(Kind kind) const {
  const auto found = costs_.find(key_of(kind));
  return found == costs_.end() || !is_known(found->second.front());
}

const StepCosts::Costs& StepCosts::costs_of(Kind kind) const {
  const auto found = costs_.find(key_of(kind));
  SLIP_CHECK(found != costs_.end(), "relative to what was never measured");
  return found->second;
}

double StepCosts::relative(Kind kind, int n_drafted, int patience) const {
  const Costs& costs = costs_of(kind);
  return estimate(costs, class_of(n_drafted), kind.n_sequences, patience) / costs.front().seconds;
}

int StepCosts::turn(Kind kind, int n_drafted) const {
  const Costs& costs = costs_of(kind);
  std::size_t i = class_of(n_drafted);
  while (i > 0 && costs[i].measured_at == 0 && !is_known(costs[i - 1])) --i;
  return std::min(n_drafted, kLengths[i]);
}

bool StepCosts::is_known(Kind kind, int n_drafted) const {
  return is_known(costs_of(kind)[class_of(n_drafted)]);
}

double StepCosts::plain_seconds(Kind kind) const { return costs_of(kind).front().seconds; }

// Seconds. Between what a shorter draft is thought to take and a longer one is known to.
double StepCosts::estimate(const Costs& costs, std::size_t i, int n_sequences, int patience) const {
  const Cost& cost = costs[i];
  if (i == 0 || is_known(cost, patience)) return cost.seconds;
  const int n_more = kLengths[i] - kLengths[i - 1];
  double guess =
      estimate(costs, i - 1, n_sequences, patience) * (1 + kGuess * n_more / n_sequences);
  for (std::size_t longer = i + 1; longer < costs.size(); ++longer) {
    if (is_known(costs[longer], patience)) guess = std::min(guess, costs[longer].seconds);
  }
  if (cost.measured_at == 0) return guess;
  return guess * std::pow(cost.seconds / guess, std::exp2(-age(cost) / patience));
}

bool StepCosts::is_surprising(const Costs& costs, std::size_t i, int n_sequences,
                              double seconds) const {
  const Cost& cost = costs[i];
  if (cost.measured_at > 0) return seconds > kSurprise * cost.seconds;
  return i > 0 && costs.front().measured_at > 0 &&
         seconds > kSurprise * estimate(costs, i, n_sequences, 1);
}

void StepCosts::observe(Kind kind, int n_drafted, double seconds) {
  ++n_steps_;
  const std::size_t i = class_of(n_drafted);
  Costs& costs = costs_[key_of(kind)];
  Cost& cost = costs[i];
  Cost& plain = costs.front();
  double weight = cost.measured_at == 0 ? 1 : (seconds < cost.seconds ? kShorter : kLonger);
  if (is_surprising(costs, i, kind.n_sequences, seconds)) {
    if (cost.surprise == 0) {
      cost.surprise = seconds;
      return;
    }
    seconds = std::min(seconds, cost.surprise);
  } else if (seconds * kSurprise < cost.seconds) {
    weight = 1;  // what was measured before was not the machine's own time
  }
  cost.surprise = 0;
  cost.is_confirmed = cost.measured_at > 0;
  cost.is_doubted = false;
  // Steps without drafts are measured again after the same pause for ever: all depends on them.
  if (cost.measured_at > 0 && !is_known(cost) && i > 0) {
    cost.doubted_after = std::min(cost.doubted_after * 2, kDoubtedAfterMost);
  }
  cost.measured_at = n_steps_;
  cost.seconds += weight * (seconds - cost.seconds);
  if (i > 0 && seconds * kSurprise < plain.seconds) plain.is_doubted = !plain.is_confirmed;
}

}  // namespace slipstream
