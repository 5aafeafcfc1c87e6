// The results of a load: latencies at p50, p90 and p99, throughput, and goodput, which is the
// number of requests per second within limits that were stated in advance.
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
// Parses "ttft=500,tpot=50,e2e=10000", in milliseconds; nullopt for any other text.
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
  double seconds = 0;  // from the first request to the last answer
  double requests_per_s = 0;
  double tokens_per_s = 0;
  double prompt_tokens = 0;  // per request, on average
  Percentiles first_token_ms;
  Percentiles between_ms;    // between pieces of text
  Percentiles per_token_ms;  // for each request, after its first token
  Percentiles end_to_end_ms;
  double goodput = 0;    // requests per second within the limits
  std::string an_error;  // of one request that failed
};

[[nodiscard]] LoadSummary summarise_load(std::span<const RequestTrace> traces,
                                         const LoadLimits& limits);
[[nodiscard]] std::string load_table(std::span<const LoadSummary> loads, bool is_markdown);

}  // namespace slipstream::bench
