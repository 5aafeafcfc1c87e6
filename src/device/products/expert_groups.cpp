#include "device/products/expert_groups.h"

#include <cstring>

namespace slipstream::turbo {
namespace {

std::size_t chosen_expert(const ExpertChoices& choices, std::int64_t token, std::int64_t rank) {
  std::int32_t expert = 0;
  std::memcpy(&expert,
              choices.experts + static_cast<std::size_t>(token) * choices.token_bytes +
                  static_cast<std::size_t>(rank) * sizeof(expert),
              sizeof(expert));
  return static_cast<std::size_t>(expert);
}

}  // namespace

void ExpertGroups::gather(const ExpertChoices& choices) {
  std::vector<std::size_t> n_uses(static_cast<std::size_t>(choices.n_experts));
  for (std::int64_t token = 0; token < choices.n_tokens; ++token) {
    for (std::int64_t rank = 0; rank < choices.n_ranks; ++rank) {
      ++n_uses.at(chosen_expert(choices, token, rank));
    }
  }
  groups_.clear();
  std::vector<std::size_t> next(n_uses.size());  // the place of an expert's next use
  std::size_t first = 0;
  for (std::size_t expert = 0; expert < n_uses.size(); ++expert) {
    next[expert] = first;
    if (n_uses[expert] == 0) continue;
    groups_.push_back(
        {.expert = static_cast<std::int64_t>(expert), .first = first, .n = n_uses[expert]});
    first += n_uses[expert];
  }
  uses_.resize(first);
  for (std::int64_t token = 0; token < choices.n_tokens; ++token) {
    for (std::int64_t rank = 0; rank < choices.n_ranks; ++rank) {
      uses_[next[chosen_expert(choices, token, rank)]++] = {.token = token, .rank = rank};
    }
  }
}

}  // namespace slipstream::turbo
