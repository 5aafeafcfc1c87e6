// TurnWriter: writes a turn as the text of one API, as events of a stream or as one answer. Steps
// with the progress of a prompt come only if the request asked for them.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <cstddef>
#include <ctime>
#include <string>

#include "engine/generation.h"
#include "server/api/api_error.h"
#include "server/json.h"
#include "server/sse.h"
#include "server/turn/turn.h"

namespace slipstream {

// What a client already knows about a stream that began while its model was being loaded.
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

  // The head of a stream.
  [[nodiscard]] virtual HttpReply head() const { return event_stream_head(); }

  // For a stream whose model is being loaded. begin_early() returns the events before the pings.
  // start() tells what the client knows so far. When the model is loaded, its turn has another
  // writer: go_on_from() gives it that start, before its begin().
  [[nodiscard]] virtual std::string begin_early() { return {}; }
  [[nodiscard]] virtual StreamStart start() const { return {}; }
  virtual void go_on_from(const StreamStart& /*start*/) {}

  // For a stream: its beginning, what a step adds, an error, and its end. Each returns any number
  // of whole events.
  [[nodiscard]] virtual std::string begin() = 0;
  [[nodiscard]] virtual std::string write(TurnStep step) = 0;
  // An event that changes nothing, sent after a silence. Clients do not take SSE comments as a sign
  // of life.
  [[nodiscard]] virtual std::string ping() = 0;
  [[nodiscard]] virtual std::string write(const ApiError& error) = 0;
  [[nodiscard]] virtual std::string end(const Usage& usage) = 0;

  // Turns of the conversation that left its window: told with the usage, if there are some.
  void set_turns_dropped(std::size_t n_turns) { n_turns_dropped_ = n_turns; }

  // For an answer that is not streamed: collects the steps, then returns the body.
  virtual void collect(TurnStep step) = 0;
  [[nodiscard]] virtual std::string whole(const Usage& usage) = 0;

 protected:
  // Adds them to an object of the usage.
  void note_turns_dropped(Json& details) const {
    if (n_turns_dropped_ > 0) details["dropped_turns"] = n_turns_dropped_;
  }

 private:
  std::size_t n_turns_dropped_ = 0;
};

}  // namespace slipstream
