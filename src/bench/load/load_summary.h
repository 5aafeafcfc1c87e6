// What a load came to: latencies at p50, p90 and p99, throughput, and goodput: the requests per
// second that met limits which were stated before.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "bench/load/request_trace.h"

namespace slipstream::bench {

struct LoadLimits {
  std::optional<double> first_token_ms = {};
  std::optional<double> per_token_ms = {};
  std::optional<double> end_to_end_ms = {};
};
// "ttft=500,tpot=50,e2e=10000", in milliseconds; empty for what is not that.
[[nodiscard]] std::optional<LoadLimits> parse_limits(std::string_view text);

struct Percentiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
};

struct LoadSummary {
  int n_clients = 0;
  int n_answered = 0;
  int n_failed = 0;
  double seconds = 0;  // from the first question to the last answer
  double requests_per_s = 0;
  double tokens_per_s = 0;
  double prompt_tokens = 0;  // of a request, on average
  Percentiles first_token_ms;
  Percentiles between_ms;    // pieces of text
  Percentiles per_token_ms;  // of each request, after its first
  Percentiles end_to_end_ms;
  double goodput = 0;    // requests per second within the limits
  std::string an_error;  // of one that failed
};

[[nodiscard]] LoadSummary summarise_load(std::span<const RequestTrace> traces,
                                         const LoadLimits& limits);
[[nodiscard]] std::string load_table(std::span<const LoadSummary> loads, bool is_markdown);

}  // namespace slipstream::bench
