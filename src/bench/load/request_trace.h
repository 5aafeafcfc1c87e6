// RequestTrace: when the answer to one streamed request came.
//
// Threads: plain data.
#pragma once

#include <string>
#include <vector>

namespace slipstream::bench {

struct RequestTrace {
  int n_clients = 0;                  // that asked at the time
  double asked_s = 0;                 // since the run began
  std::vector<double> events_s = {};  // when each piece of text came, since it was asked for
  double ended_s = 0;                 // since it was asked for
  int n_prompt_tokens = 0;            // as the server counts them
  int n_tokens = 0;                   // of the answer
  std::string error = {};             // empty: it was answered

  [[nodiscard]] double first_token_s() const { return events_s.empty() ? 0 : events_s.front(); }
  // Of each token after the first. A piece may hold several tokens: the server's count decides.
  [[nodiscard]] double per_token_s() const {
    return n_tokens < 2 ? 0 : (events_s.back() - events_s.front()) / (n_tokens - 1);
  }
};

}  // namespace slipstream::bench
