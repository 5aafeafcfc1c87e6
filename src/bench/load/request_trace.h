// RequestTrace: when the parts of the answer to one streamed request arrived.
//
// Threads: plain data.
#pragma once

#include <string>
#include <vector>

namespace slipstream::bench {

struct RequestTrace {
  int n_clients = 0;                  // active at the time
  double asked_s = 0;                 // since the run began
  std::vector<double> events_s = {};  // arrival of each piece of text, since the request
  double ended_s = 0;                 // since the request
  int n_prompt_tokens = 0;            // as counted by the server
  int n_tokens = 0;                   // in the answer
  std::string error = {};             // empty if it was answered

  [[nodiscard]] double first_token_s() const { return events_s.empty() ? 0 : events_s.front(); }
  // The time for each token after the first. A piece may hold several tokens, so the server's
  // count is used.
  [[nodiscard]] double per_token_s() const {
    return n_tokens < 2 ? 0 : (events_s.back() - events_s.front()) / (n_tokens - 1);
  }
};

}  // namespace slipstream::bench
