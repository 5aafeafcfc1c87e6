#include "engine/forecast/kv_choice.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/format.h"
#include "base/format_bytes.h"

namespace slipstream {
namespace {

// Returns, for example: "--ctx 65536 fits with turbo4, --ctx 49152 with turbo8v4".
Result<std::string> advise(const ModelProfile& profile, std::span<const KvScheme> schemes,
                           std::uint64_t available_bytes, const ContextShape& shape) {
  std::string advice;
  for (const KvScheme& scheme : std::views::reverse(schemes)) {
    const Result<std::int64_t> n_ctx = largest_context(profile, scheme, available_bytes, shape);
    if (!n_ctx) return std::unexpected(n_ctx.error());
    if (*n_ctx == 0) continue;
    advice += format_text("{}--ctx {} {}with {}", advice.empty() ? "" : ", ", *n_ctx,
                          advice.empty() ? "fits " : "", scheme.name());
  }
  return advice.empty() ? "no context fits: use a smaller model" : advice;
}

// advised: schemes whose largest contexts the error message names, best first.
Result<KvChoice> first_that_fits(const ModelProfile& profile, std::span<const KvScheme> tried,
                                 std::span<const KvScheme> advised, std::uint64_t available_bytes,
                                 const ContextShape& shape) {
  std::string needs;
  std::int64_t n_ctx = 0;
  for (const KvScheme& scheme : tried) {
    Result<MemoryForecast> forecasted = forecast(profile, scheme, shape);
    if (!forecasted) return std::unexpected(forecasted.error());
    if (needed_bytes(*forecasted) <= available_bytes) {
      return KvChoice{.scheme = scheme, .forecast = std::move(*forecasted)};
    }
    n_ctx = forecasted->n_ctx;
    needs += format_text("{}{} with {}", needs.empty() ? "" : ", ",
                         format_bytes(needed_bytes(*forecasted)), scheme.name());
  }
  const Result<std::string> advice = advise(profile, advised, available_bytes, shape);
  if (!advice) return std::unexpected(advice.error());
  return fail(Code::kOutOfMemory,
              format_text("a context of {} needs {}, and {} are available: {}", n_ctx, needs,
                          format_bytes(available_bytes), *advice));
}

}  // namespace

std::vector<KvScheme> candidates(const ModelGeometry& geometry, bool has_plugin,
                                 const KvFindings* findings) {
  if (!has_plugin || !std::ranges::any_of(geometry.attention, can_compress)) return {KvScheme{}};
  const auto bytes = [&](const KvScheme& scheme) {
    // Long enough that what is kept in 8 bits beside the codes does not decide.
    return cache_bytes(geometry, scheme, {.n_ctx = 32768});
  };
  std::vector<KvScheme> schemes;
  const auto add_if_smaller = [&](const KvScheme& scheme) {
    if (schemes.empty() || bytes(scheme) < bytes(schemes.back())) schemes.push_back(scheme);
  };
  if (findings != nullptr) std::ranges::for_each(findings->measured, add_if_smaller);
  for (const std::string_view name : {"turbo8v4", "turbo4", "turbo3"}) {
    if (findings != nullptr && std::ranges::contains(findings->broken, name)) continue;
    const Result<KvScheme> scheme = parse_kv_scheme(name);
    SLIP_CHECK(scheme.has_value(), "a scheme of ours has no such name");
    add_if_smaller(*scheme);
  }
  // Where all of them break the model, nothing is left but what is exact.
  if (schemes.empty()) schemes.emplace_back();
  return schemes;
}

std::uint64_t needed_bytes(const MemoryForecast& forecast) {
  return forecast.total() + forecast.total() / 20;
}

Result<std::int64_t> largest_context(const ModelProfile& profile, const KvScheme& scheme,
                                     std::uint64_t available_bytes, const ContextShape& shape) {
  const std::int64_t wanted = std::max(shape.n_ctx, profile.geometry.n_ctx_train);
  std::int64_t fits = 0;                                                   // in steps
  std::int64_t too_many = (wanted + kContextStep - 1) / kContextStep + 1;  // one more than wanted
  while (too_many - fits > 1) {
    const std::int64_t middle = (fits + too_many) / 2;
    ContextShape tried = shape;
    tried.n_ctx = middle * kContextStep;
    const Result<MemoryForecast> forecasted = forecast(profile, scheme, tried);
    if (!forecasted) return std::unexpected(forecasted.error());
    (needed_bytes(*forecasted) <= available_bytes ? fits : too_many) = middle;
  }
  return fits * kContextStep;
}

Result<KvChoice> choose(const ModelProfile& profile, std::uint64_t available_bytes,
                        const ContextShape& shape, bool has_plugin, const KvFindings* findings) {
  const std::vector<KvScheme> schemes = candidates(profile.geometry, has_plugin, findings);
  return first_that_fits(profile, schemes, schemes, available_bytes, shape);
}

Result<KvChoice> check_fits(const ModelProfile& profile, const KvScheme& scheme,
                            std::uint64_t available_bytes, const ContextShape& shape,
                            bool has_plugin) {
  std::vector<KvScheme> advised = candidates(profile.geometry, has_plugin);
  if (std::ranges::none_of(advised, [&](const auto& s) { return s.name() == scheme.name(); })) {
    advised.insert(advised.begin(), scheme);
  }
  return first_that_fits(profile, std::span(&scheme, 1), advised, available_bytes, shape);
}

}  // namespace slipstream
