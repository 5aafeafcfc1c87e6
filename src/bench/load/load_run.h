// run_load(): so many clients ask a server at once, each the next as soon as its last is answered.
//
// Every request has a prompt of its own, cut from a text at another place: no server can answer it
// from what it kept of an earlier one.
//
// Threads: call from one thread; starts one per client. Errors: in the traces.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/load/request_trace.h"

namespace slipstream::bench {

struct LoadTask {
  std::string url = {};  // up to and with /v1
  std::string api_key = {};
  std::string model = {};
  std::string text = {};
  std::size_t n_prompt_bytes = 2048;
  int n_tokens = 64;  // of each answer
  int n_clients = 1;
  int n_requests = 16;  // in all
  double timeout_seconds = 600;
};

[[nodiscard]] std::vector<RequestTrace> run_load(const LoadTask& task,
                                                 const std::function<void(double)>& on_progress);

// The i-th prompt: at a place that no other has, and with its own first words.
[[nodiscard]] std::string prompt_of(const LoadTask& task, int i);

}  // namespace slipstream::bench
