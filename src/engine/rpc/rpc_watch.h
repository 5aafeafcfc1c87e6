// RpcWatch: notices that a host is gone.
//
// ggml's client notices only when it is owed an answer, ends the process then, and does not say which
// host. A host whose machine or network is gone it waits for without end. So the watch finds the
// client's connections among this process's descriptors, has the kernel probe them, and waits for
// one to be closed. The process cannot go on without the host: ggml keeps no other way back.
//
// Threads: one of its own. on_lost is called from it, or from the thread that ggml ends the process
//          on, and once: it must not return.
// Errors:  kIo if a host has no connection, or a thread cannot be told to stop.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/rpc/rpc_host.h"

namespace slipstream {

class RpcWatch {
 public:
  using OnLost = std::function<void(const std::string& host)>;

  // REQUIRES: ggml's client is connected to all hosts. A process has one watch at a time.
  [[nodiscard]] static Result<std::unique_ptr<RpcWatch>> start(std::span<const RpcHost> hosts,
                                                               OnLost on_lost);
  ~RpcWatch();
  RpcWatch(const RpcWatch&) = delete;
  RpcWatch& operator=(const RpcWatch&) = delete;

 private:
  struct Connection {
    std::string host;
    UniqueFd fd;  // a copy of ggml's
  };
  RpcWatch(std::vector<Connection> connections, UniqueFd stop, OnLost on_lost);

  static void take_abort(const char* message);
  void run();
  void report(const std::string& host);
  // The host of a connection that is closed; null if there is none. Waits for one as long as told.
  [[nodiscard]] const std::string* find_closed(int time_ms_max);

  std::vector<Connection> connections_;
  UniqueFd stop_;  // readable at the end
  OnLost on_lost_;
  std::jthread thread_;
};

}  // namespace slipstream
