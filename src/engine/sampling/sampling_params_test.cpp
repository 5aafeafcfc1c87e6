#include "engine/sampling/sampling_params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "engine/sampling/not_finite.h"
#include "engine/sampling/sampling_limits.h"

namespace slipstream {
namespace {

constexpr int kVocab = 100;

std::string error_of(const std::function<void(SamplingParams&)>& change) {
  SamplingParams params;
  change(params);
  const Result<void> result = check(params, kVocab);
  if (result) return "none";
  EXPECT_EQ(result.error().code, Code::kInvalidArgument);
  return result.error().message;
}

TEST(SamplingParams, DefaultsAndUsualValuesAreFine) {
  EXPECT_EQ(error_of([](SamplingParams&) {}), "none");
  EXPECT_EQ(error_of([](SamplingParams& p) {
              p = {.temperature = 0,
                   .top_k = 40,
                   .top_p = 0.95F,
                   .min_p = 0.05F,
                   .typical_p = 0.9F,
                   .repeat_penalty = 1.1F,
                   .frequency_penalty = -2,
                   .presence_penalty = 2,
                   .penalty_last_n = 0,
                   .logit_bias = {{0, -100}, {kVocab - 1, -kInfinity}},
                   .seed = 0xFFFFFFFF,
                   .n_top_logprobs = 0};
              p.dry.multiplier = 0.8F;
            }),
            "none");
}

TEST(SamplingParams, NamesWhatIsOutOfRange) {
  EXPECT_EQ(error_of([](auto& p) { p.temperature = -1; }), "temperature must be 0 or more, not -1");
  EXPECT_EQ(error_of([](auto& p) { p.temperature = kNan; }),
            "temperature must be 0 or more, not nan");
  EXPECT_EQ(error_of([](auto& p) { p.temperature = kInfinity; }),
            "temperature must be 0 or more, not inf");
  EXPECT_EQ(error_of([](auto& p) { p.top_k = -1; }),
            "top_k must be between 0 and 2147483647, not -1");
  EXPECT_EQ(error_of([](auto& p) { p.top_p = 0; }),
            "top_p must be greater than 0 and at most 1, not 0");
  EXPECT_EQ(error_of([](auto& p) { p.top_p = 1.5F; }),
            "top_p must be greater than 0 and at most 1, not 1.5");
  EXPECT_EQ(error_of([](auto& p) { p.min_p = kNan; }), "min_p must be between 0 and 1, not nan");
  EXPECT_EQ(error_of([](auto& p) { p.typical_p = -1; }),
            "typical_p must be greater than 0 and at most 1, not -1");
  EXPECT_EQ(error_of([](auto& p) { p.repeat_penalty = 0; }),
            "repeat_penalty must be between 0.01 and 100, not 0");
  EXPECT_EQ(error_of([](auto& p) { p.frequency_penalty = kInfinity; }),
            "frequency_penalty must be between -100 and 100, not inf");
  EXPECT_EQ(error_of([](auto& p) { p.presence_penalty = 101; }),
            "presence_penalty must be between -100 and 100, not 101");
  EXPECT_EQ(error_of([](auto& p) { p.penalty_last_n = -1; }),
            "penalty_last_n must be between 0 and 1048576, not -1");
  EXPECT_EQ(error_of([](auto& p) { p.n_top_logprobs = 101; }),
            "top_logprobs must be between -1 and 100, not 101");
}

TEST(SamplingParams, ChecksDry) {
  EXPECT_EQ(error_of([](auto& p) { p.dry.multiplier = -1; }),
            "dry_multiplier must be between 0 and 100, not -1");
  EXPECT_EQ(error_of([](auto& p) { p.dry.base = 0.5F; }),
            "dry_base must be between 1 and 100, not 0.5");
  EXPECT_EQ(error_of([](auto& p) { p.dry.allowed_length = -1; }),
            "dry_allowed_length must be between 0 and 1048576, not -1");
  EXPECT_EQ(error_of([](auto& p) { p.dry.last_n = 1 << 21; }),
            "dry_penalty_last_n must be between 0 and 1048576, not 2097152");
  constexpr std::string_view kBytes =
      "each of dry_sequence_breakers must have 1 to 40 bytes and no NUL";
  EXPECT_EQ(error_of([](auto& p) { p.dry.sequence_breakers = {""}; }), kBytes);
  EXPECT_EQ(error_of([](auto& p) { p.dry.sequence_breakers = {std::string(41, 'a')}; }), kBytes);
  EXPECT_EQ(error_of([](auto& p) { p.dry.sequence_breakers = {std::string(1, '\0')}; }), kBytes);
  EXPECT_EQ(error_of([](auto& p) { p.dry.sequence_breakers.assign(17, "a"); }),
            "dry_sequence_breakers are 17, more than the 16 allowed");
}

TEST(SamplingParams, ChecksBiases) {
  EXPECT_EQ(error_of([](auto& p) { p.logit_bias = {{kVocab, 1}}; }),
            "logit_bias names token 100, but the vocabulary has 0 to 99");
  EXPECT_EQ(error_of([](auto& p) { p.logit_bias = {{-1, 1}}; }),
            "logit_bias names token -1, but the vocabulary has 0 to 99");
  EXPECT_EQ(error_of([](auto& p) { p.logit_bias = {{3, kInfinity}}; }),
            "logit_bias of token 3 must be between -1e+06 and 1e+06, or minus infinity, not inf");
  EXPECT_NE(error_of([](auto& p) { p.logit_bias = {{3, kNan}}; }), "none");
  EXPECT_EQ(
      error_of([](auto& p) { p.logit_bias.assign(kSamplingLimits.logit_biases_max + 1, {3, 1}); }),
      "logit_bias has 65537 entries, more than the 65536 allowed");
}

TEST(SamplingParams, ChecksWhatEndsAnAnswer) {
  EXPECT_EQ(error_of([](auto& p) { p.stop_tokens = {0, kVocab - 1}; }), "none");
  EXPECT_EQ(error_of([](auto& p) { p.stop_tokens = {3, kVocab}; }),
            "stop_token_ids names token 100, but the vocabulary has 0 to 99");
  EXPECT_EQ(error_of([](auto& p) { p.stop_tokens = {-1}; }),
            "stop_token_ids names token -1, but the vocabulary has 0 to 99");
  EXPECT_EQ(error_of([](auto& p) { p.stop_tokens.assign(65, 1); }),
            "stop_token_ids are 65, more than the 64 allowed");
  EXPECT_EQ(error_of([](auto& p) { p.n_tokens_min = -1; }),
            "min_tokens must be between 0 and 2147483647, not -1");
}

}  // namespace
}  // namespace slipstream
