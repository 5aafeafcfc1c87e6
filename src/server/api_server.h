// ApiServer: `slipstream serve`. It serves OpenAI's API over HTTP, in front of an engine.
//
// Threads: thread-safe.
// Errors:  start(): for the address, the file of keys and the stored responses.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/browser_guard.h"
#include "server/http/http_server.h"
#include "server/model_pool.h"
#include "server/recall/rescue.h"
#include "server/store/response_store.h"

namespace slipstream {

class AttachmentStore;
class McpServer;
class Retrieval;

struct ApiServerOptions {
  HttpOptions http;
  std::vector<std::string> api_keys;  // empty, and no keys_file: everybody may use the server
  std::string keys_file = {};         // more keys, with limits (keys_file.h); empty: none
  BrowserGuardOptions browsers = {};
  ResponseStoreOptions responses = {};
  std::optional<RescueOptions> rescue = {};  // none: what is longer than its window is refused
  McpServer* mcp = nullptr;  // answers /mcp, and outlives the server; null: nobody does
  AttachmentStore* attachments = nullptr;  // as well; null: clients cannot attach files
  Retrieval* retrieval = nullptr;          // outlives the server; null: chats cannot ask for it
  std::string build_info = {};             // of the program, for /props
  int n_restarts = 0;                      // of the process, for /metrics
  int n_workers = 2;                       // threads that turn bodies into requests to the engine
  int n_waiting_max = 256;                 // limit of requests that wait for a worker
};

class ApiServer {
 public:
  // The server answers before the models are loaded: /health succeeds, /ready fails, and requests
  // wait for the load.
  [[nodiscard]] static Result<std::unique_ptr<ApiServer>> start(const ApiServerOptions& options,
                                                                ModelPoolOptions models);
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Whether all pinned models are loaded; an error if one could not be loaded.
  [[nodiscard]] Result<bool> is_ready() const;
  // Reads the file of keys again and returns their number. If it cannot be used, the old keys stay.
  [[nodiscard]] Result<int> reload_keys();
  [[nodiscard]] std::string address() const;
  // Accepts no more requests and lets those in progress end until the time is up. Returns whether
  // all have ended.
  bool drain(std::chrono::milliseconds time_max);

 private:
  class Impl;
  explicit ApiServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace slipstream
