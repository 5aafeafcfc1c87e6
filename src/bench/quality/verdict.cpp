#include "bench/quality/verdict.h"

#include <utility>

#include "base/format.h"

namespace slipstream::quality {
namespace {

Judgement judge_depth(const DepthFigures& figures) {
  if (std::string reason = what_is_past(kBrokenFrom, figures); !reason.empty()) {
    return {.verdict = Verdict::kBroken, .reason = std::move(reason)};
  }
  if (std::string reason = what_is_past(kFineUpTo, figures); !reason.empty()) {
    return {.verdict = Verdict::kVisibleLoss, .reason = std::move(reason)};
  }
  return {.verdict = Verdict::kFine,
          .reason = format_text("mean KL divergence {:.4f} at depth {}", figures.divergence.kl_mean,
                                figures.depth)};
}

}  // namespace

std::string what_is_past(const Thresholds& limit, const DepthFigures& figures) {
  const DivergenceFigures& found = figures.divergence;
  if (figures.rows.n_lost >= kLostRun) {
    return format_text(
        "a layer's cache does not hold what was written to it, for {} tokens from {} on",
        figures.rows.n_lost, figures.rows.first_lost);
  }
  if (!(found.kl_mean <= limit.kl_mean)) {  // so that NaN exceeds it
    return format_text("mean KL divergence {:.4f} at depth {} is above {}", found.kl_mean,
                       figures.depth, limit.kl_mean);
  }
  if (!(found.same_top >= limit.same_top)) {
    return format_text("the same top token in {:.1f} % at depth {} is below {:.0f} %",
                       100 * found.same_top, figures.depth, 100 * limit.same_top);
  }
  return {};
}

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFine: return "fine";
    case Verdict::kVisibleLoss: return "visible loss";
    case Verdict::kBroken: return "broken";
  }
  return "";
}

Result<Verdict> parse_verdict(std::string_view text) {
  if (text == "visible-loss") return Verdict::kVisibleLoss;
  if (text == "broken") return Verdict::kBroken;
  return fail(Code::kInvalidArgument,
              format_text("there is no verdict {}: say visible-loss or broken", text));
}

std::optional<Judgement> judge(std::span<const DepthFigures> figures) {
  std::optional<Judgement> worst;
  for (const DepthFigures& at_depth : figures) {
    Judgement judgement = judge_depth(at_depth);
    if (!worst || judgement.verdict > worst->verdict) worst = std::move(judgement);
  }
  return worst;
}

}  // namespace slipstream::quality
