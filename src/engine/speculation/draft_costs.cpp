#include "engine/speculation/draft_costs.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace slipstream {
namespace {

// How far a measurement moves what is known: others make steps longer, never shorter.
constexpr double kIfShorter = 0.5;
constexpr double kIfLonger = 0.1;
// A token of many costs less than a round, by how much before it is measured.
constexpr double kOfRound = 0.25;

}  // namespace

double DraftCosts::believed(const Measured& measured, double guess) const {
  if (measured.seconds <= guess) return measured.seconds;
  const double age = static_cast<double>(n_steps_ - measured.at) / kDoubtedAfter;
  return guess * std::pow(measured.seconds / guess, std::exp2(-age));
}

double DraftCosts::estimate(int n_sequences, int n_rounds, double step_seconds) const {
  const double guess = relative_cost_ * step_seconds;
  // Where it is not known for so many sequences, as for the nearest number.
  const auto near = std::ranges::min_element(rounds_, {}, [n_sequences](const auto& entry) {
    return std::abs(entry.first - n_sequences);
  });
  return n_rounds * (near == rounds_.end() ? guess : believed(near->second, guess));
}

double DraftCosts::estimate_learning(double step_seconds) const {
  const double guess = kOfRound * relative_cost_ * step_seconds;
  return learning_.seconds > 0 ? believed(learning_, guess) : guess;
}

void DraftCosts::add(Measured& measured, double seconds, bool is_new) const {
  const double weight = is_new ? 1 : (seconds < measured.seconds ? kIfShorter : kIfLonger);
  measured.seconds += weight * (seconds - measured.seconds);
  measured.at = n_steps_;
}

void DraftCosts::observe(int n_sequences, int n_rounds, double seconds) {
  const auto [entry, is_new] = rounds_.try_emplace(n_sequences);
  add(entry->second, seconds / n_rounds, is_new);
}

void DraftCosts::observe_learning(int n_tokens, double seconds) {
  add(learning_, seconds / n_tokens, learning_.seconds == 0);
}

}  // namespace slipstream
