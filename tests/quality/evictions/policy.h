// Policies of eviction: which cells of a text stay in the cache, decided after the text was read and
// before anybody has asked. All keep the first kSinkTokens and some of the last tokens.
//
//   recency   the last ones, and nothing else (StreamingLLM)
//   random    any
//   mass      half of them the last ones; the others by the attention they got from all queries (H2O)
//   window    by the attention they got from the last queries, the largest of 7 neighbours (SnapKV)
//   tri       by what a query will give them at distances to come (TriAttention; tri_score.h)
//
// Threads: pure functions. Errors: none; a budget smaller than what every policy keeps is a bug.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "attention_record.h"

namespace slipstream::evictions {

enum class Policy { kRecency, kRandom, kMass, kWindow, kTri };

inline constexpr std::array<std::string_view, 5> kPolicyNames = {"recency", "random", "mass",
                                                                 "window", "tri"};
[[nodiscard]] std::optional<Policy> policy_of(std::string_view name);
[[nodiscard]] std::string_view name_of(Policy policy);

inline constexpr std::size_t kSinkTokens = 4;
inline constexpr std::size_t kLastTokens = 64;
inline constexpr std::size_t kKeptMin = kSinkTokens + 2 * kLastTokens;

// Which cells stay, for each KV head of each layer ([layer][kv head][cell]).
using Kept = std::vector<std::vector<bool>>;

// Whole cells, as a cache of libllama has to, or each head its own, as most policies were published.
enum class Unit { kCell, kHead };

[[nodiscard]] Kept keep(Policy policy, Unit unit, const AttentionRecord& record, std::size_t n_kept,
                        unsigned seed);

}  // namespace slipstream::evictions
