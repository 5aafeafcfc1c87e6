#include "cli/serve/serve.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/service_manager.h"
#include "cli/build_info.h"
#include "cli/serve/first_run.h"
#include "cli/serve/lost_host.h"
#include "cli/serve/models.h"
#include "cli/serve/offered_index.h"
#include "cli/serve/supervisor.h"
#include "engine/model/model.h"
#include "server/api_server.h"
#include "server/http/crash_notice.h"
#include "server/http/listener.h"

namespace slipstream::serve {
namespace {

// SIGINT and SIGTERM are waited for instead of handled, and SIGHUP is answered meanwhile. All three
// are blocked in every thread that starts later.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  void on_hangup(std::function<void()> answer) { answer_ = std::move(answer); }
  // Whether SIGINT or SIGTERM came within the time. A SIGHUP may end the wait early.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds time) const {
    const timespec until{.tv_sec = time.count() / 1000, .tv_nsec = time.count() % 1000 * 1'000'000};
    const int which = sigtimedwait(&set_, nullptr, &until);
    return which > 0 && !is_hangup(which);
  }
  void wait() const {
    int which = SIGHUP;
    while (sigwait(&set_, &which) != 0 || is_hangup(which)) {
    }
  }

 private:
  [[nodiscard]] bool is_hangup(int which) const {
    if (which != SIGHUP) return false;
    answer_();
    return true;
  }

  sigset_t set_{};
  std::function<void()> answer_ = [] {};
};

// The inherited listener, or a new one.
Result<UniqueFd> listener_of(const Options& options) {
  Result<UniqueFd> inherited = inherited_listener();
  if (!inherited || *inherited) return inherited;
  return open_listener(options.host, options.port);
}

void reload_keys(ApiServer& server) {
  const Result<int> n_keys = server.reload_keys();
  if (n_keys) {
    log::info("serve.keys", {{"n", *n_keys}});
  } else {
    log::error("serve.keys", {{"error", n_keys.error().message}, {"kept", "the old keys"}});
  }
}

// Waits until all requests have ended, the time is up, or a second signal comes.
void drain(ApiServer& server, const StopSignals& signals, std::chrono::seconds time_max) {
  log::info("serve.drain", {{"seconds_max", time_max.count()}});
  const auto end = std::chrono::steady_clock::now() + time_max;
  while (!server.drain(std::chrono::milliseconds(50))) {
    if (std::chrono::steady_clock::now() > end || signals.wait_for(std::chrono::milliseconds(0))) {
      log::warn("serve.cut_off");
      return;
    }
  }
}

// Returns false if a signal came before the models were ready.
Result<bool> wait_for_models(const ApiServer& server, const StopSignals& signals) {
  while (true) {
    const Result<bool> is_ready = server.is_ready();
    if (!is_ready || *is_ready) return is_ready;
    if (signals.wait_for(std::chrono::milliseconds(20))) return false;
  }
}

// Makes glibc allocate blocks of the size of a large request with mmap, so that they return to the
// system when freed. By default glibc would in time keep up to 64 MB in the heap of each thread.
void return_large_blocks() { ::mallopt(M_MMAP_THRESHOLD, 1 << 20); }

Result<void> try_serve(const Options& options, UniqueFd listener) {
  StopSignals signals;
  if (const char* key = std::getenv("SLIPSTREAM_API_KEY");
      options.api_keys.empty() && key != nullptr && *key == '\0') {
    return fail(Code::kInvalidArgument,
                "SLIPSTREAM_API_KEY is empty: give it a key, or unset it to let everybody ask");
  }
  // The first time, an operator wants the error and the exit status.
  if (!options.rpc.empty() && n_restarts_by_supervisor().value_or(0) > 0) {
    const Result<bool> are_there = wait_for_hosts(
        options.rpc, [&signals](std::chrono::milliseconds time) { return signals.wait_for(time); });
    if (!are_there) return std::unexpected(are_there.error());
    if (!*are_there) return {};
  }
  Result<ModelPoolOptions> models = models_to_serve(options);
  if (!models) return std::unexpected(models.error());
  ApiServerOptions server_options;
  server_options.http.host = options.host;
  server_options.http.port = options.port;
  server_options.api_keys = options.api_keys;
  server_options.keys_file = options.keys_file;
  server_options.n_workers =
      options.n_http_threads > 0 ? options.n_http_threads : std::max(2, threads_to_use(0) / 2);
  server_options.n_waiting_max = options.n_queue;
  server_options.browsers = {.hosts = options.hosts, .origins = options.origins};
  if (!options.responses_dir.empty()) {
    server_options.responses.folder = options.responses_dir;
    server_options.responses.bytes_max = options.responses_bytes;
  }
  const Result<OfferedIndex> index = offered_index(options);
  if (!index) return std::unexpected(index.error());
  server_options.mcp = index->mcp.get();
  server_options.attachments = index->attachments.get();
  server_options.retrieval = index->retrieval.get();
  if (options.context_overflow == "rescue") {
    server_options.rescue.emplace();
    if (options.n_recalled_max >= 0) {
      server_options.rescue->n_recalled_max = static_cast<std::size_t>(options.n_recalled_max);
    }
  }
  server_options.build_info = build_info();
  server_options.n_restarts = n_restarts_by_supervisor().value_or(0);
  server_options.http.listener = listener.release();
  send_notices_on_crash();
  Result<std::unique_ptr<ApiServer>> server = ApiServer::start(server_options, std::move(*models));
  if (!server) return std::unexpected(server.error());
  signals.on_hangup([&server] { reload_keys(**server); });
  log::info("serve.listen", {{"address", (*server)->address()}});
  const Result<bool> is_ready = wait_for_models(**server, signals);
  if (!is_ready) return std::unexpected(is_ready.error());
  if (!*is_ready) return {};
  if (has_no_model(options)) {
    log::info("serve.choose_model", {{"open", "http://" + (*server)->address() + "/#/models"}});
  }
  log::info("serve.ready", {{"address", (*server)->address()}});
  tell_service_manager("READY=1");
  tell_supervisor();
  signals.wait();
  tell_service_manager("STOPPING=1");
  drain(**server, signals, std::chrono::seconds(options.drain_seconds_max));
  return {};
}

// Returns the exit status.
int report(const Error& error) {
  if (error.code == Code::kCancelled) return 0;
  std::fprintf(stderr, "slipstream serve: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int serve(const Options& asked, char** argv) {
  return_large_blocks();
  const bool is_supervised = n_restarts_by_supervisor().has_value();
  const Result<Options> options = with_models(asked, !is_supervised);
  if (!options) return report(options.error());
  // This comes before anything is loaded and before there are threads.
  Result<UniqueFd> listener = listener_of(*options);
  const bool supervises = options->supervises || !options->rpc.empty();
  if (listener && supervises && !is_supervised) return supervise(std::move(*listener), argv);
  const Result<void> served = listener.and_then(
      [&](UniqueFd& inherited) { return try_serve(*options, std::move(inherited)); });
  return served ? 0 : report(served.error());
}

}  // namespace slipstream::serve
