// Verdict: what the figures of a scheme mean. All thresholds are defined here and only here.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/quality/arm.h"

namespace slipstream::quality {

enum class Verdict { kFine, kVisibleLoss, kBroken };

[[nodiscard]] std::string_view name(Verdict verdict);  // "fine", "visible loss", "broken"
// Parses a name, with '-' for a space.
[[nodiscard]] Result<Verdict> parse_verdict(std::string_view name);

struct Thresholds {
  double kl_mean;
  double same_top;
};
// A scheme that exceeds one of these at any depth is no longer fine. Stock's q4_0, which many use
// without complaint, is within both on the needle model, whose 4.5 million parameters make it more
// sensitive than larger ones (docs/quality.md: 0.0127 to 0.0168 and 90.7 to 93.0 %); turbo3 is not.
inline constexpr Thresholds kFineUpTo = {.kl_mean = 0.02, .same_top = 0.9};
// A scheme that exceeds one of these is broken: it is worse than turbo2, the worst scheme that
// works as intended (0.21 and 68 % there).
inline constexpr Thresholds kBrokenFrom = {.kl_mean = 0.25, .same_top = 0.6};
// This many tokens in a row whose keys or values are lost in a layer are half a tile.
inline constexpr int kLostRun = 8;

// Of the needles that f16 finds at a depth, a scheme that loses more than this share, and more than
// one, is no longer fine. One that loses more than half of them, and more than two, is broken. They
// count where f16 finds at least half: a model that finds fewer finds them by chance.
inline constexpr double kNeedlesLostFine = 0.1;
inline constexpr double kNeedlesLostBroken = 0.5;

// The needles of one depth.
struct NeedleCount {
  int depth = 0;
  int n = 0;       // that were asked for
  int n_base = 0;  // that f16 finds
  int n_kept = 0;  // of those, what the scheme finds
};
[[nodiscard]] std::vector<NeedleCount> count_needles(std::span<const NeedleAnswer> found,
                                                     std::span<const NeedleAnswer> base);

// The figure that exceeds the limit, or the lost tokens, in words; empty if there are none.
[[nodiscard]] std::string what_is_past(const Thresholds& limit, const DepthFigures& figures);

struct Judgement {
  Verdict verdict = Verdict::kFine;
  std::string reason = {};  // the figure that decided
};

// Judges by the worst depth. nullopt if no divergence was measured.
[[nodiscard]] std::optional<Judgement> judge(std::span<const DepthFigures> figures);
// The same, and by the needles that f16 finds. Without divergences nothing is fine: nullopt if no
// needles are lost either.
[[nodiscard]] std::optional<Judgement> judge(const ArmResult& found, const ArmResult& base);

}  // namespace slipstream::quality
