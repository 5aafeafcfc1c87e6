// TurnWriter: one API's text of a turn, as events of a stream or as one answer. Steps that tell the
// progress of a prompt come only where the request asked for them.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <ctime>
#include <string>

#include "engine/generation.h"
#include "server/api/api_error.h"
#include "server/turn/turn.h"

namespace slipstream {

// What a client knows of a stream that began while its model was being loaded.
struct StreamStart {
  std::string id = {};
  std::time_t created = 0;
  int n_events = 0;
};

class TurnWriter {
 public:
  TurnWriter() = default;
  virtual ~TurnWriter() = default;
  TurnWriter(const TurnWriter&) = delete;
  TurnWriter& operator=(const TurnWriter&) = delete;

  // A stream whose model is being loaded: what comes before its pings, and what is known of it
  // then. The writer that the model's turn has goes on from there, before its begin().
  [[nodiscard]] virtual std::string begin_early() { return {}; }
  [[nodiscard]] virtual StreamStart start() const { return {}; }
  virtual void go_on_from(const StreamStart& /*start*/) {}

  // A stream: before anything is generated; what a step adds; what could not be generated; the end.
  // Each is any number of whole events.
  [[nodiscard]] virtual std::string begin() = 0;
  [[nodiscard]] virtual std::string write(TurnStep step) = 0;
  // After a silence: an event that changes nothing, for clients do not count comments as a sign of life.
  [[nodiscard]] virtual std::string ping() = 0;
  [[nodiscard]] virtual std::string write(const ApiError& error) = 0;
  [[nodiscard]] virtual std::string end(const Usage& usage) = 0;

  // One answer: the steps are collected, and are then a body.
  virtual void collect(TurnStep step) = 0;
  [[nodiscard]] virtual std::string whole(const Usage& usage) = 0;
};

}  // namespace slipstream
