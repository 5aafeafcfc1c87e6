// draft_lengths(): how many drafted tokens of each sequence a step should verify.
//
// The more tokens a step verifies, the longer it takes, for all sequences in it. What counts is the
// product of all sequences' speeds, so that one that gains much does not slow down the others for
// little: twice the speed for one pays for 5 % less for each of seven others, not for 10 %.
//
// Threads: a pure function. Errors: none.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace slipstream {

// chances: for each sequence that generates, the chance that each drafted token is right together
// with those before it. relative_cost: of a step with so many drafted tokens, in steps without.
// Returns a length for each sequence, all 0 unless the gain is worth mentioning.
[[nodiscard]] std::vector<int> draft_lengths(std::span<const std::vector<double>> chances,
                                             const std::function<double(int)>& relative_cost,
                                             int n_drafted_max);

}  // namespace slipstream
