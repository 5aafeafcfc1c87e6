#include "bench/load/load_summary.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>
#include <vector>

#include "base/format.h"
#include "bench/report/text_table.h"
#include "bench/speed/summary.h"

namespace slipstream::bench {
namespace {

constexpr double kMs = 1e3;

Percentiles percentiles_of(const std::vector<double>& values) {
  return {.p50 = percentile(values, 0.5),
          .p90 = percentile(values, 0.9),
          .p99 = percentile(values, 0.99)};
}

bool meets(const RequestTrace& trace, const LoadLimits& limits) {
  const auto within = [](const std::optional<double>& limit, double seconds) {
    return !limit || seconds * kMs <= *limit;
  };
  return within(limits.first_token_ms, trace.first_token_s()) &&
         within(limits.per_token_ms, trace.per_token_s()) &&
         within(limits.end_to_end_ms, trace.ended_s);
}

}  // namespace

std::optional<LoadLimits> parse_limits(std::string_view text) {
  LoadLimits limits;
  for (const auto word : std::views::split(text, ',')) {
    const std::string_view limit(word);
    const std::size_t equals = limit.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view number = limit.substr(equals + 1);
    double ms = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), ms);
    if (error != std::errc{} || end != number.data() + number.size() || ms <= 0)
      return std::nullopt;
    const std::string_view name = limit.substr(0, equals);
    if (name == "ttft") {
      limits.first_token_ms = ms;
    } else if (name == "tpot") {
      limits.per_token_ms = ms;
    } else if (name == "e2e") {
      limits.end_to_end_ms = ms;
    } else {
      return std::nullopt;
    }
  }
  return limits;
}

LoadSummary summarise_load(std::span<const RequestTrace> traces, const LoadLimits& limits) {
  LoadSummary summary;
  std::vector<double> first_token;
  std::vector<double> between;
  std::vector<double> per_token;
  std::vector<double> end_to_end;
  double n_tokens = 0;
  double n_prompt_tokens = 0;
  int n_good = 0;
  for (const RequestTrace& trace : traces) {
    summary.n_clients = trace.n_clients;
    summary.seconds = std::max(summary.seconds, trace.asked_s + trace.ended_s);
    if (!trace.error.empty()) {
      ++summary.n_failed;
      summary.an_error = trace.error;
      continue;
    }
    ++summary.n_answered;
    n_tokens += trace.n_tokens;
    n_prompt_tokens += trace.n_prompt_tokens;
    first_token.push_back(trace.first_token_s() * kMs);
    if (trace.n_tokens > 1) per_token.push_back(trace.per_token_s() * kMs);
    end_to_end.push_back(trace.ended_s * kMs);
    for (std::size_t i = 1; i < trace.events_s.size(); ++i) {
      between.push_back((trace.events_s[i] - trace.events_s[i - 1]) * kMs);
    }
    if (meets(trace, limits)) ++n_good;
  }
  if (summary.seconds > 0) {
    summary.requests_per_s = summary.n_answered / summary.seconds;
    summary.tokens_per_s = n_tokens / summary.seconds;
    summary.goodput = n_good / summary.seconds;
  }
  if (summary.n_answered > 0) summary.prompt_tokens = n_prompt_tokens / summary.n_answered;
  summary.first_token_ms = percentiles_of(first_token);
  summary.between_ms = percentiles_of(between);
  summary.per_token_ms = percentiles_of(per_token);
  summary.end_to_end_ms = percentiles_of(end_to_end);
  return summary;
}

std::string load_table(std::span<const LoadSummary> loads, bool is_markdown) {
  TextTable table({"clients", "answered", "failed", "requests/s", "tokens/s", "first token ms",
                   "between ms", "per token ms", "end to end ms", "goodput/s"});
  const auto three = [](const Percentiles& p) {
    return format_text("{:.0f} / {:.0f} / {:.0f}", p.p50, p.p90, p.p99);
  };
  for (const LoadSummary& load : loads) {
    table.add({format_text("{}", load.n_clients), format_text("{}", load.n_answered),
               format_text("{}", load.n_failed), format_text("{:.2f}", load.requests_per_s),
               format_text("{:.1f}", load.tokens_per_s), three(load.first_token_ms),
               three(load.between_ms), three(load.per_token_ms), three(load.end_to_end_ms),
               format_text("{:.2f}", load.goodput)});
  }
  return is_markdown ? table.markdown() : table.plain();
}

}  // namespace slipstream::bench
