// ApiServer: `slipstream serve`. OpenAI's API over HTTP, in front of an engine.
//
// Threads: thread-safe. Errors: start(): as of the address, the file of keys and the stored
// responses.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/browser_guard.h"
#include "server/http/http_server.h"
#include "server/model_pool.h"
#include "server/store/response_store.h"

namespace slipstream {

struct ApiServerOptions {
  HttpOptions http;
  std::vector<std::string> api_keys;  // none: everybody may ask
  std::string keys_file = {};         // more of them, with limits (keys_file.h); empty: none
  BrowserGuardOptions browsers = {};
  ResponseStoreOptions responses = {};
  std::string build_info = {};  // of the program, for /props
  int n_restarts = 0;           // of the process, for /metrics
  int n_workers = 2;            // threads that make of a body what the engine takes
  int n_waiting_max = 256;      // requests that wait for them
};

class ApiServer {
 public:
  // The door is open before the models are loaded: /health answers, /ready says no, and requests
  // wait for the load.
  [[nodiscard]] static Result<std::unique_ptr<ApiServer>> start(const ApiServerOptions& options,
                                                                ModelPoolOptions models);
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Whether all models that are to stay are loaded; an error if one could not be.
  [[nodiscard]] Result<bool> is_ready() const;
  // Reads the file of keys again; how many there are. Where it cannot be used, the old ones stay.
  [[nodiscard]] Result<int> reload_keys();
  [[nodiscard]] std::string address() const;
  // Takes no more requests and lets those in progress end, until the time is up. Whether all did.
  bool drain(std::chrono::milliseconds time_max);

 private:
  class Impl;
  explicit ApiServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace slipstream
