// StreamClient: asks an OpenAI-compatible server for a completion and records when its text
// arrives. libcurl does HTTP and TLS. The connection is kept for the next request.
//
// Threads: one client per thread. Errors: in the trace; every request has one.
#pragma once

#include <memory>
#include <string>

#include "bench/load/request_trace.h"

namespace slipstream::bench {

struct StreamRequest {
  std::string model;
  std::string prompt;
  int n_tokens = 128;
};

class StreamClient {
 public:
  // url: including /v1. api_key may be empty.
  StreamClient(std::string url, const std::string& api_key, double timeout_seconds);
  ~StreamClient();
  StreamClient(const StreamClient&) = delete;
  StreamClient& operator=(const StreamClient&) = delete;

  [[nodiscard]] RequestTrace complete(const StreamRequest& request);
  // The first of the server's models. If there is none, `error` holds a message.
  [[nodiscard]] std::string first_model(std::string& error);

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::string url_;
};

}  // namespace slipstream::bench
