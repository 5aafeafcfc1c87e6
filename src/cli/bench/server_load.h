// `slipstream bench --server URL`: measures the latencies of any OpenAI-compatible server under
// load. The table goes to standard output, every request into a directory: requests.jsonl, load.md.
#pragma once

#include <string>
#include <vector>

namespace slipstream::bench {

struct ServerLoadOptions {
  std::string url;
  std::string api_key;
  std::string model;  // empty: the server's first
  std::vector<int> n_clients;
  int n_requests = 0;  // for each number of clients; 0: four per client, at least 16
  int n_prompt = 0;    // approximate tokens
  int n_tokens = 0;
  std::string text;       // a file; empty: built in
  std::string limits;     // for goodput; empty: every answer counts as good
  std::string directory;  // empty: no files are written
};

// Returns the exit status: 0, or 1 if a request failed or nothing could be measured.
int run(const ServerLoadOptions& options);

}  // namespace slipstream::bench
