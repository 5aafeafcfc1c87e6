// Verdict: what the figures of a scheme mean, from thresholds that stand here and nowhere else.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "bench/quality/arm.h"

namespace slipstream::quality {

enum class Verdict { kFine, kVisibleLoss, kBroken };

[[nodiscard]] std::string_view name(Verdict verdict);  // "fine", "visible loss", "broken"
// By name, with '-' for a space.
[[nodiscard]] Result<Verdict> parse_verdict(std::string_view name);

struct Thresholds {
  double kl_mean;
  double same_top;
};
// Past one of them at any depth a scheme is no longer fine. Stock's q4_0, which many use without
// complaint, is within both on the needle model, whose 4.5 million parameters make it more
// sensitive than larger ones (docs/quality.md: 0.0127 to 0.0168 and 90.7 to 93.0 %); turbo3 is not.
inline constexpr Thresholds kFineUpTo = {.kl_mean = 0.02, .same_top = 0.9};
// Past one of them a scheme is broken: worse than the worst that works as it should, turbo2 (0.21
// and 68 % there).
inline constexpr Thresholds kBrokenFrom = {.kl_mean = 0.25, .same_top = 0.6};
// As many tokens in a row whose keys or values are lost in a layer are half a tile.
inline constexpr int kLostRun = 8;

// The figure that exceeds the limit, or the tokens that were lost, in words; empty: none.
[[nodiscard]] std::string what_is_past(const Thresholds& limit, const DepthFigures& figures);

struct Judgement {
  Verdict verdict = Verdict::kFine;
  std::string reason = {};  // the figure that decided
};

// Of the worst depth. None where no divergence was measured.
[[nodiscard]] std::optional<Judgement> judge(std::span<const DepthFigures> figures);

}  // namespace slipstream::quality
