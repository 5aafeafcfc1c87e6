#include "cli/chat/local_server.h"

#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "base/format.h"
#include "cli/chat/interrupts.h"
#include "cli/serve/models.h"

namespace slipstream::chat {
namespace {

std::string random_key() {
  std::random_device random;
  return format_text("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

// The threads of the server do not receive Ctrl-C: all of them descend from threads started here.
Result<std::unique_ptr<ApiServer>> start_server(const serve::Options& options,
                                                const std::string& api_key) {
  const Interrupts::Masked masked;
  Result<ModelPoolOptions> models = serve::models_to_serve(options);
  if (!models) return std::unexpected(models.error());
  ApiServerOptions server_options;
  server_options.http.host = "127.0.0.1";
  server_options.http.port = 0;
  server_options.api_keys = {api_key};
  return ApiServer::start(server_options, std::move(*models));
}

}  // namespace

Result<LocalServer> LocalServer::start(serve::Options options, bool (*is_stopped)()) {
  options.n_parallel = 1;
  const std::string api_key = random_key();
  Result<std::unique_ptr<ApiServer>> server = start_server(options, api_key);
  if (!server) return std::unexpected(server.error());
  while (true) {
    const Result<bool> is_ready = (*server)->is_ready();
    if (!is_ready) return std::unexpected(is_ready.error());
    if (*is_ready) return LocalServer(std::move(*server), api_key);
    if (is_stopped()) return fail(Code::kCancelled, "stopped");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace slipstream::chat
