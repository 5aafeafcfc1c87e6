#include "bench/quality/verdict.h"

#include <algorithm>
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

std::string divergence_past(const Thresholds& limit, const DivergenceFigures& found, int depth) {
  if (!(found.kl_mean <= limit.kl_mean)) {  // so that NaN exceeds it
    return format_text("mean KL divergence {:.4f} at depth {} is above {}", found.kl_mean, depth,
                       limit.kl_mean);
  }
  if (!(found.same_top >= limit.same_top)) {
    return format_text("the same top token in {:.1f} % at depth {} is below {:.0f} %",
                       100 * found.same_top, depth, 100 * limit.same_top);
  }
  return {};
}

std::optional<Judgement> judge_needles(const NeedleCount& count) {
  if (2 * count.n_base < count.n) return std::nullopt;
  const int n_lost = count.n_base - count.n_kept;
  const auto is_past = [&](double share, int n) {
    return n_lost > n && n_lost > share * count.n_base;
  };
  if (!is_past(kNeedlesLostFine, 1)) return std::nullopt;
  return Judgement{
      .verdict = is_past(kNeedlesLostBroken, 2) ? Verdict::kBroken : Verdict::kVisibleLoss,
      .reason = format_text("{} of {} needles that f16 finds at depth {} are lost", n_lost,
                            count.n_base, count.depth)};
}

}  // namespace

std::string what_is_past(const Thresholds& limit, const DepthFigures& figures) {
  if (figures.rows.n_lost >= kLostRun) {
    return format_text(
        "a layer's cache does not hold what was written to it, for {} tokens from {} on",
        figures.rows.n_lost, figures.rows.first_lost);
  }
  std::string reason = divergence_past(limit, figures.divergence, figures.depth);
  if (reason.empty() && figures.decoded.n_tokens > 0) {
    reason = divergence_past(limit, figures.decoded, figures.depth);
    if (!reason.empty()) reason += ", of tokens read one at a time";
  }
  return reason;
}

std::vector<NeedleCount> count_needles(std::span<const NeedleAnswer> found,
                                       std::span<const NeedleAnswer> base) {
  std::vector<NeedleCount> counts;
  for (std::size_t i = 0; i < std::min(found.size(), base.size()); ++i) {
    auto count = std::ranges::find(counts, base[i].depth, &NeedleCount::depth);
    if (count == counts.end()) count = counts.insert(count, {.depth = base[i].depth});
    ++count->n;
    if (!base[i].right) continue;
    ++count->n_base;
    if (found[i].right) ++count->n_kept;
  }
  return counts;
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

std::optional<Judgement> judge(const ArmResult& found, const ArmResult& base) {
  std::optional<Judgement> worst = judge(found.divergence);
  for (const NeedleCount& count : count_needles(found.needles, base.needles)) {
    std::optional<Judgement> judgement = judge_needles(count);
    if (judgement && (!worst || judgement->verdict > worst->verdict)) worst = std::move(judgement);
  }
  return worst;
}

}  // namespace slipstream::quality
