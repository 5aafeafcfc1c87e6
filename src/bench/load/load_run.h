// run_load(): several clients ask a server at the same time. Each sends its next request as soon as
// its last one is answered.
//
// Every request has its own prompt, cut from a text at a different position, so that no server can
// answer it from what it kept of an earlier one.
//
// Threads: call from one thread; starts one per client. Errors: in the traces.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/load/request_trace.h"

namespace slipstream::bench {

struct LoadTask {
  std::string url = {};  // including /v1
  std::string api_key = {};
  std::string model = {};
  std::string text = {};
  std::size_t n_prompt_bytes = 2048;
  int n_tokens = 64;  // per answer
  int n_clients = 1;
  int n_requests = 16;  // total
  double timeout_seconds = 600;
};

[[nodiscard]] std::vector<RequestTrace> run_load(const LoadTask& task,
                                                 const std::function<void(double)>& on_progress);

// The i-th prompt, from a position that no other prompt has, and with its own first words.
[[nodiscard]] std::string prompt_of(const LoadTask& task, int i);

}  // namespace slipstream::bench
