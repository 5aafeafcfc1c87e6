// LocalServer: the server of `slipstream serve` inside this program, on a port of its own and with
// a secret key, so that a chat with a local model works like a chat with a server.
//
// Threads: thread-compatible. Errors: those of loading the model.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/serve/serve.h"
#include "server/api_server.h"

namespace slipstream::chat {

class LocalServer {
 public:
  // Waits until the model is loaded. Meanwhile is_stopped is called.
  [[nodiscard]] static Result<LocalServer> start(serve::Options options, bool (*is_stopped)());

  [[nodiscard]] std::string url() const { return "http://" + server_->address(); }
  [[nodiscard]] const std::string& api_key() const { return api_key_; }

 private:
  LocalServer(std::unique_ptr<ApiServer> server, std::string api_key)
      : server_(std::move(server)), api_key_(std::move(api_key)) {}

  std::unique_ptr<ApiServer> server_;
  std::string api_key_;
};

}  // namespace slipstream::chat
