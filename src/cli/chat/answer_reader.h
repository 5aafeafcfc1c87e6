// AnswerReader: builds an Answer from the events of a streamed chat completion, and times them.
//
// Threads: thread-compatible. Errors: kept; error() returns the first one that an event reported.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "bench/load/event_lines.h"
#include "cli/chat/chat_client.h"

namespace slipstream::chat {

class AnswerReader {
 public:
  explicit AnswerReader(const std::function<void(const Piece&)>& on_piece) : on_piece_(on_piece) {}

  void take(std::string_view bytes);
  // The message of an error that came instead of events or as an event; empty if there was none.
  [[nodiscard]] std::string error() const;
  [[nodiscard]] Answer finish();

 private:
  void take_event(const Json& event);
  void take_delta(const Json& delta);
  void give(Piece::Kind kind, const std::string& text);

  const std::function<void(const Piece&)>& on_piece_;
  const std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
  bench::EventLines lines_;
  Answer answer_;
  double last_piece_s_ = 0;
  int n_pieces_ = 0;
  std::string error_;
};

// The "message" in OpenAI's {"error": {"message"}}, or what is present of it.
[[nodiscard]] std::string error_message(const Json& body);

}  // namespace slipstream::chat
