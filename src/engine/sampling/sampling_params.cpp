#include "engine/sampling/sampling_params.h"

#include <cmath>
#include <limits>
#include <string_view>

#include "base/format.h"
#include "engine/sampling/sampling_limits.h"

namespace slipstream {
namespace {

// libllama truncates longer breakers.
constexpr std::size_t kBreakerBytesMax = 40;

// NaN is out of every range.
Result<void> in_range(std::string_view name, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return fail(Code::kInvalidArgument,
              format_text("{} must be between {} and {}, not {}", name, low, high, value));
}

Result<void> positive_share(std::string_view name, double value) {
  if (value > 0 && value <= 1) return {};
  return fail(Code::kInvalidArgument,
              format_text("{} must be greater than 0 and at most 1, not {}", name, value));
}

Result<void> check_temperature(float temperature) {
  if (temperature >= 0 && std::isfinite(temperature)) return {};
  return fail(Code::kInvalidArgument,
              format_text("temperature must be 0 or more, not {}", temperature));
}

Result<void> check_breakers(const std::vector<std::string>& breakers) {
  if (breakers.size() > kSamplingLimits.dry_breakers_max) {
    return fail(Code::kInvalidArgument,
                format_text("dry_sequence_breakers are {}, more than the {} allowed",
                            breakers.size(), kSamplingLimits.dry_breakers_max));
  }
  for (const std::string& breaker : breakers) {
    if (breaker.empty() || breaker.size() > kBreakerBytesMax || breaker.contains('\0')) {
      return fail(Code::kInvalidArgument,
                  format_text("each of dry_sequence_breakers must have 1 to {} bytes and no NUL",
                              kBreakerBytesMax));
    }
  }
  return {};
}

Result<void> check_biases(const std::vector<LogitBias>& biases, int n_vocab) {
  constexpr float kBiasMax = 1e6F;
  if (biases.size() > kSamplingLimits.logit_biases_max) {
    return fail(Code::kInvalidArgument,
                format_text("logit_bias has {} entries, more than the {} allowed", biases.size(),
                            kSamplingLimits.logit_biases_max));
  }
  for (const LogitBias& entry : biases) {
    if (entry.token < 0 || entry.token >= n_vocab) {
      return fail(Code::kInvalidArgument,
                  format_text("logit_bias names token {}, but the vocabulary has 0 to {}",
                              entry.token, n_vocab - 1));
    }
    const bool bans = entry.bias == -INFINITY;
    if (!bans && !(std::abs(entry.bias) <= kBiasMax)) {
      return fail(
          Code::kInvalidArgument,
          format_text("logit_bias of token {} must be between {} and {}, or minus infinity, "
                      "not {}",
                      entry.token, -kBiasMax, kBiasMax, entry.bias));
    }
  }
  return {};
}

Result<void> check_stop_tokens(const std::vector<Token>& tokens, int n_vocab) {
  if (tokens.size() > kSamplingLimits.stop_tokens_max) {
    return fail(Code::kInvalidArgument,
                format_text("stop_token_ids are {}, more than the {} allowed", tokens.size(),
                            kSamplingLimits.stop_tokens_max));
  }
  for (const Token token : tokens) {
    if (token >= 0 && token < n_vocab) continue;
    return fail(Code::kInvalidArgument,
                format_text("stop_token_ids names token {}, but the vocabulary has 0 to {}", token,
                            n_vocab - 1));
  }
  return {};
}

}  // namespace

Result<void> check(const SamplingParams& params, int n_vocab) {
  const auto window_max = static_cast<double>(kSamplingLimits.penalty_window_max);
  const DryParams& dry = params.dry;
  // The bounds of penalties keep logits finite; no useful value is near them.
  for (const Result<void>& result :
       {check_temperature(params.temperature),
        in_range("top_k", params.top_k, 0, std::numeric_limits<int>::max()),
        positive_share("top_p", params.top_p), in_range("min_p", params.min_p, 0, 1),
        positive_share("typical_p", params.typical_p),
        in_range("repeat_penalty", params.repeat_penalty, 0.01, 100),
        in_range("frequency_penalty", params.frequency_penalty, -100, 100),
        in_range("presence_penalty", params.presence_penalty, -100, 100),
        in_range("penalty_last_n", params.penalty_last_n, 0, window_max),
        in_range("dry_multiplier", dry.multiplier, 0, 100), in_range("dry_base", dry.base, 1, 100),
        in_range("dry_allowed_length", dry.allowed_length, 0, window_max),
        in_range("dry_penalty_last_n", dry.last_n, 0, window_max),
        check_breakers(dry.sequence_breakers), check_biases(params.logit_bias, n_vocab),
        check_stop_tokens(params.stop_tokens, n_vocab),
        in_range("min_tokens", params.n_tokens_min, 0, std::numeric_limits<int>::max()),
        in_range("top_logprobs", params.n_top_logprobs, -1, kSamplingLimits.top_logprobs_max)}) {
    if (!result) return result;
  }
  return {};
}

}  // namespace slipstream
