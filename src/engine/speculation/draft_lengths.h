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

// Of a step with so many drafted tokens of each sequence, in steps without.
using RelativeCost = std::function<double(std::span<const int> lengths)>;

// chances: for each sequence that generates, the chance that each drafted token is right together
// with those before it. relative_cost: of a step with so many drafted tokens, in steps without.
// Returns a length for each sequence, all 0 unless the gain is worth mentioning.
[[nodiscard]] std::vector<int> draft_lengths(std::span<const std::vector<double>> chances,
                                             const RelativeCost& relative_cost, int n_drafted_max);

// The same with n tokens at most: the longest drafts give theirs up.
[[nodiscard]] std::vector<int> shortened(std::vector<int> lengths, int n);

}  // namespace slipstream
