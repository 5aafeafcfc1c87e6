// ChatAnswer: all deltas of an answer combined, as a client that does not stream sees it.
//
// Threads: thread-compatible.
// Errors:  deltas out of order are a bug of the parser (SLIP_CHECK).
#pragma once

#include <string>
#include <vector>

#include "base/check.h"
#include "server/output/chat_delta.h"

namespace slipstream {

struct ChatAnswer {
  struct Call {
    std::string name;
    std::string arguments;
    bool complete = false;
    bool operator==(const Call&) const = default;
  };

  void add(const ChatDeltas& deltas) {
    for (const ChatDelta& delta : deltas) add(delta);
  }
  void add(const ChatDelta& delta) {
    const bool in_call =
        delta.kind == ChatDelta::Kind::kCallArguments || delta.kind == ChatDelta::Kind::kCallEnd;
    SLIP_CHECK(in_call == call_is_open || in_call, "a call is interrupted");
    SLIP_CHECK(!in_call || call_is_open, "no call is open");
    switch (delta.kind) {
      case ChatDelta::Kind::kReasoning: reasoning += delta.text; break;
      case ChatDelta::Kind::kContent: content += delta.text; break;
      case ChatDelta::Kind::kCallBegin:
        calls.push_back({.name = delta.text, .arguments = ""});
        call_is_open = true;
        break;
      case ChatDelta::Kind::kCallArguments: calls.back().arguments += delta.text; break;
      case ChatDelta::Kind::kCallEnd:
        calls.back().complete = delta.complete;
        call_is_open = false;
        break;
    }
    const bool is_of_call = delta.call_idx >= 0;
    SLIP_CHECK(!is_of_call || delta.call_idx + 1 == static_cast<int>(calls.size()),
               "calls are not numbered in order");
  }
  bool operator==(const ChatAnswer&) const = default;

  std::string reasoning;
  std::string content;
  std::vector<Call> calls;
  bool call_is_open = false;
};

}  // namespace slipstream
