// EngineStream: requests that a handler has given to the engine, and what comes of them.
//
// Where the handler ends early, for whatever reason, those that have not ended are cancelled. What
// passes here is measured for /metrics.
//
// Threads: on the handler's executor; the engine's events come from its thread. Errors: submit():
// as of the engine.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "server/http/http_exchange.h"
#include "server/http/signal.h"
#include "server/metrics.h"
#include "server/served_model.h"

namespace slipstream {

class EngineStream {
 public:
  EngineStream(ServedModel& model, HttpExchange& exchange);
  ~EngineStream();
  EngineStream(const EngineStream&) = delete;
  EngineStream& operator=(const EngineStream&) = delete;

  // Numbered from 0 in the order of the calls.
  [[nodiscard]] Result<void> submit(GenerateRequest request);

  struct Item {
    std::size_t request;
    Event event;
  };
  // Waits for at least one; none: the client has gone. Not after every request has ended.
  boost::asio::awaitable<std::optional<std::vector<Item>>> next();
  [[nodiscard]] bool has_ended() const { return n_open_ == 0; }

 private:
  // Shared with the engine's thread, which may still speak when the handler has gone.
  struct Mailbox {
    Mutex mutex;
    std::vector<Item> items SLIP_GUARDED_BY(mutex);
  };

  Engine& engine_;
  RequestMetrics& metrics_;
  HttpExchange& exchange_;
  const std::shared_ptr<Mailbox> mailbox_;
  const std::shared_ptr<Signal> signal_;
  std::vector<std::optional<RequestId>> open_;  // none: it has ended
  std::size_t n_open_ = 0;
  std::vector<RequestMetrics::Watch> watches_;
};

}  // namespace slipstream
