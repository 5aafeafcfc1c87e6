// `slipstream bench --server URL`: the latencies of any OpenAI-compatible server under load. The
// table goes to standard output, every request into a directory: requests.jsonl, load.md.
#pragma once

#include <string>
#include <vector>

namespace slipstream::bench {

struct ServerLoadOptions {
  std::string url;
  std::string api_key;
  std::string model;  // empty: the server's first
  std::vector<int> n_clients;
  int n_requests = 0;  // at each number of clients; 0: four each, 16 at least
  int n_prompt = 0;    // tokens, about
  int n_tokens = 0;
  std::string text;       // a file; empty: built in
  std::string limits;     // for goodput; empty: every answer is good
  std::string directory;  // empty: nothing is written
};

// Exit statuses: 0; 1 where a request failed or nothing could be measured.
int run(const ServerLoadOptions& options);

}  // namespace slipstream::bench
