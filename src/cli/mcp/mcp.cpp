#include "cli/mcp/mcp.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/bounded_queue.h"
#include "base/format.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "cli/index/index.h"
#include "cli/mcp/line_reader.h"
#include "cli/version.h"
#include "mcp/mcp_limits.h"
#include "mcp/mcp_server.h"
#include "retrieval/content/outliner.h"

namespace slipstream::mcp {
namespace {

constexpr int kWorkers = 3;               // more than may wait for the index at a time
constexpr std::size_t kWaitingMax = 256;  // calls of one client

// Answers of several threads, one on a line.
class Output {
 public:
  void write(const std::string& text) {
    if (text.empty()) return;
    const std::string line = text + "\n";
    const MutexLock lock(mutex_);
    if (!is_open_) return;
    const Result<void> written = write_exactly(STDOUT_FILENO, std::as_bytes(std::span(line)));
    if (written) return;
    is_open_ = false;  // the client has gone: standard input ends, too
    log::warn("mcp.write", {{"error", written.error().message}});
  }

 private:
  Mutex mutex_;
  bool is_open_ SLIP_GUARDED_BY(mutex_) = true;
};

// Signals that end the program, as a descriptor. They are blocked in every thread that starts later.
Result<UniqueFd> stop_signals() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  UniqueFd fd(::signalfd(-1, &stop, SFD_CLOEXEC));
  if (!fd) return fail_errno(errno, "cannot wait for signals");
  return fd;
}

std::string too_long() {
  return rpc_text(
      rpc_reply(Json(), RpcError{.code = kRpcInvalidRequest,
                                 .message = format_text("a message may have {} bytes",
                                                        kMcpLimits.message_bytes_max)}));
}

Result<void> try_mcp(const Options& options) {
  const Result<UniqueFd> stop = stop_signals();
  if (!stop) return std::unexpected(stop.error());
  if (!Outliner::is_available()) {
    log::warn("mcp.symbols", {{"missing", "universal-ctags: find_symbol finds nothing"}});
  }
  Result<std::unique_ptr<Corpus>> corpus =
      Corpus::open({.index_path = index::index_path(options.index),
                    .folders = options.folders,
                    .clients_may_add = options.clients_may_add,
                    .n_threads = options.n_threads});
  if (!corpus) return std::unexpected(corpus.error());
  McpServer server(std::move(*corpus), kVersion);
  log::info("mcp.ready", {{"index", index::index_path(options.index)}});

  Output output;
  BoundedQueue<McpWork> waiting(kWaitingMax);
  std::vector<std::jthread> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.emplace_back([&] {
      while (const std::optional<McpWork> work = waiting.pop())
        output.write(server.answer(*work).text);
    });
  }
  LineReader lines(STDIN_FILENO, stop->get(), kMcpLimits.message_bytes_max);
  McpSession session;
  Result<void> ended;
  while (true) {
    const Result<ReadLine> line = lines.next();
    if (!line) ended = std::unexpected(line.error());
    if (!line || line->kind == ReadLine::Kind::kEnd) break;
    if (line->kind == ReadLine::Kind::kTooLong) {
      output.write(too_long());
      continue;
    }
    if (line->text.find_first_not_of(" \t") == std::string::npos) continue;
    // Here, in the order of the messages; what takes longer is answered by a worker.
    // If too much waits already, the client has to wait.
    const McpWork work = server.read(line->text, nullptr, &session);
    if (!work.is_long() || !waiting.try_push(work)) output.write(server.answer(work).text);
  }
  server.stop();
  waiting.close();
  workers.clear();  // what was asked for is answered
  return ended;
}

}  // namespace

Command::Command(CLI::App& app) {
  mcp_ = app.add_subcommand("mcp",
                            "Offer the folders of the index to an agent that starts this, over "
                            "standard input and output");
  index::add_index_option(*mcp_, options_.index);
  mcp_->add_option(
          "--project", options_.folders,
          "Only this folder, which is added to the index if it is not there; may be given more "
          "than once (default: all folders of the index)")
      ->type_name("FOLDER");
  mcp_->add_flag("--allow-add", options_.clients_may_add,
                 "The agent may add folders of its choice to the index (with --project never)");
  mcp_->add_option("-t,--threads", options_.n_threads, "Threads that read files (0: one per core)")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
}

std::optional<int> Command::run() const {
  if (!mcp_->parsed()) return std::nullopt;
  return mcp(options_);
}

int mcp(const Options& options) {
  const Result<void> served = try_mcp(options);
  if (served) return 0;
  std::fprintf(stderr, "slipstream mcp: %s\n", served.error().message.c_str());
  return 1;
}

}  // namespace slipstream::mcp
