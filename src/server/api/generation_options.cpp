#include "server/api/generation_options.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/format.h"
#include "engine/sampling/sampling_limits.h"
#include "server/api/prompts.h"

namespace slipstream {
namespace {

constexpr int kAnswersMax = 64;
constexpr std::int64_t kTokensMax = std::int64_t{1} << 30;
constexpr std::int64_t kNoLimit = -1;

void read_into(float& value, const std::optional<double>& number) {
  if (number) value = static_cast<float>(*number);
}

void read_into(int& value, const std::optional<std::int64_t>& number) {
  if (number) value = static_cast<int>(*number);
}

// {"50256": -100}
std::vector<LogitBias> read_logit_bias(JsonFields& fields) {
  std::vector<LogitBias> biases;
  const Json* object = fields.object("logit_bias");
  if (object == nullptr) return biases;
  for (const auto& [key, value] : object->items()) {
    Token token = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (error != std::errc() || end != key.data() + key.size() || !value.is_number()) {
      fields.refuse("logit_bias", "'logit_bias' must have token ids as keys and numbers as values");
      return {};
    }
    const auto bias = value.get<double>();
    if (!(bias >= -100 && bias <= 100)) {
      fields.refuse("logit_bias", format_text("'logit_bias' of {} must be from -100 to 100", key));
      return {};
    }
    biases.push_back({.token = token, .bias = static_cast<float>(bias)});
  }
  return biases;
}

std::vector<Token> read_stop_tokens(JsonFields& fields) {
  constexpr std::string_view kName = "stop_token_ids";
  const Json* ids = fields.array(kName);
  if (ids == nullptr) return {};
  const std::size_t n_max = kSamplingLimits.stop_tokens_max;
  if (ids->size() > n_max || !std::ranges::all_of(*ids, is_token)) {
    fields.refuse(kName, format_text("'{}' must be an array of up to {} token ids", kName, n_max));
    return {};
  }
  return ids->get<std::vector<Token>>();
}

DryParams read_dry(JsonFields& fields) {
  DryParams dry;
  read_into(dry.multiplier, fields.number("dry_multiplier", 0, 100));
  read_into(dry.base, fields.number("dry_base", 1, 100));
  read_into(dry.allowed_length, fields.integer("dry_allowed_length", 0, kTokensMax));
  read_into(dry.last_n, fields.integer("dry_penalty_last_n", 0, kTokensMax));
  if (fields.any("dry_sequence_breakers") != nullptr) {
    dry.sequence_breakers = fields.texts("dry_sequence_breakers");
  }
  return dry;
}

SamplingParams read_sampling(JsonFields& fields) {
  SamplingParams params;
  read_into(params.temperature, fields.number("temperature", 0, 100));
  read_into(params.top_k, fields.integer("top_k", kNoLimit, kTokensMax));
  params.top_k = std::max(params.top_k, 0);  // other servers use 0 or -1 for no limit
  read_into(params.top_p, fields.number("top_p", 0, 1));
  read_into(params.min_p, fields.number("min_p", 0, 1));
  read_into(params.typical_p, fields.number("typical_p", 0, 1));
  read_into(params.repeat_penalty, fields.number("repetition_penalty", 0, 100));  // vLLM's name
  read_into(params.repeat_penalty, fields.number("repeat_penalty", 0, 100));
  read_into(params.penalty_last_n, fields.integer("repeat_last_n", 0, kTokensMax));
  read_into(params.frequency_penalty, fields.number("frequency_penalty", -2, 2));
  read_into(params.presence_penalty, fields.number("presence_penalty", -2, 2));
  params.dry = read_dry(fields);
  params.logit_bias = read_logit_bias(fields);
  params.stop_tokens = read_stop_tokens(fields);
  read_into(params.n_tokens_min, fields.integer("min_tokens", 0, kTokensMax));
  constexpr std::int64_t kSeedMax = std::int64_t{1} << 53;  // JSON numbers are exact up to here
  constexpr std::int64_t kRandomSeed = -1;                  // llama-server's
  if (const auto seed = fields.integer("seed", -kSeedMax, kSeedMax); seed && *seed != kRandomSeed) {
    const auto bits = static_cast<std::uint64_t>(*seed);
    params.seed = static_cast<std::uint32_t>(bits ^ (bits >> 32U));
  }
  params.grammar = fields.text("grammar").value_or("");
  return params;
}

}  // namespace

GenerationOptions read_generation_options(JsonFields& fields) {
  GenerationOptions options;
  options.model = fields.text("model").value_or("");
  read_into(options.n, fields.integer("n", 1, kAnswersMax));
  // llama-server's name, and OpenAI's older and newer names. As for llama-server, -1 means as many
  // as fit.
  for (const std::string_view name : {"n_predict", "max_tokens", "max_completion_tokens"}) {
    const auto n = fields.integer(name, kNoLimit, kTokensMax);
    if (n == 0)
      fields.refuse(name, format_text("'{}' must be at least 1, or -1 for no limit", name));
    if (n && *n > 0) options.max_tokens = static_cast<int>(*n);
  }
  options.streams = fields.boolean("stream").value_or(false);
  if (const Json* stream = fields.object("stream_options")) {
    JsonFields stream_fields(*stream, "stream_options");
    options.wants_usage_in_stream = stream_fields.boolean("include_usage").value_or(false);
    if (stream_fields.error()) fields.refuse("stream_options", stream_fields.error()->message);
    if (!options.streams) {
      fields.refuse("stream_options", "'stream_options' needs 'stream': true");
    }
  }
  options.wants_progress = fields.boolean("return_progress").value_or(false);
  options.wants_timings = fields.boolean("timings_per_token").value_or(false);
  options.sampling = read_sampling(fields);
  options.stops = fields.texts("stop");
  options.ignores_end = fields.boolean("ignore_eos").value_or(false);
  return options;
}

}  // namespace slipstream
