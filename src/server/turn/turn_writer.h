// TurnWriter: one API's text of a turn, as events of a stream or as one answer. Steps that tell the
// progress of a prompt come only where the request asked for them.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <string>

#include "engine/generation.h"
#include "server/api/api_error.h"
#include "server/turn/turn.h"

namespace slipstream {

class TurnWriter {
 public:
  TurnWriter() = default;
  virtual ~TurnWriter() = default;
  TurnWriter(const TurnWriter&) = delete;
  TurnWriter& operator=(const TurnWriter&) = delete;

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
