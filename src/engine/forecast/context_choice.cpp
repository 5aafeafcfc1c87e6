#include "engine/forecast/context_choice.h"

#include <algorithm>

#include "base/check.h"

namespace slipstream {
namespace {

// What is available differs a little from start to start; the context should not.
constexpr std::int64_t kRoundTo = 4096;

Result<std::int64_t> round_context(const ModelProfile& profile, const KvScheme& scheme,
                                   std::uint64_t n_bytes, const ContextShape& shape) {
  const Result<std::int64_t> largest = largest_context(profile, scheme, n_bytes, shape);
  if (!largest || *largest >= shape.n_ctx) {
    return largest.transform([&](std::int64_t n) { return std::min(n, shape.n_ctx); });
  }
  return *largest / kRoundTo * kRoundTo;
}

}  // namespace

Result<std::optional<KvChoice>> choose_context(const ModelProfile& profile,
                                               std::span<const KvScheme> schemes,
                                               std::uint64_t n_bytes, const ContextShape& shape) {
  SLIP_CHECK(shape.n_ctx > 0, "a whole context of no tokens");
  for (std::size_t i = 0; i < schemes.size(); ++i) {
    const Result<std::int64_t> n_ctx = round_context(profile, schemes[i], n_bytes, shape);
    if (!n_ctx) return std::unexpected(n_ctx.error());
    const bool is_smallest = i + 1 == schemes.size();
    if (*n_ctx < std::min(shape.n_ctx, is_smallest ? kContextLeast : kContextEnough)) continue;
    ContextShape chosen = shape;
    chosen.n_ctx = *n_ctx;
    Result<MemoryForecast> forecasted = forecast(profile, schemes[i], chosen);
    if (!forecasted) return std::unexpected(forecasted.error());
    return KvChoice{.scheme = schemes[i], .forecast = std::move(*forecasted)};
  }
  return std::nullopt;
}

}  // namespace slipstream
