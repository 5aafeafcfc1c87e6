// ChatDelta: one step of an answer as a client of the chat API sees it.
//
// The deltas of one answer arrive in this order: reasoning and content, in any number and order;
// for each tool call one kCallBegin, any number of kCallArguments and one kCallEnd, with no
// other kind between them. The concatenated arguments of a call are always one valid JSON
// object, even if the model was cut off: then they are closed as early as possible, and the
// kCallEnd is not `complete`.
//
// Threads: immutable.
#pragma once

#include <string>
#include <vector>

namespace slipstream {

struct ChatDelta {
  enum class Kind {
    kReasoning,      // text
    kContent,        // text
    kCallBegin,      // text: the tool's name
    kCallArguments,  // text: more of the JSON object
    kCallEnd,
  };
  Kind kind;
  std::string text = {};
  int call_idx = -1;     // for the call kinds: 0, 1, ...
  bool complete = true;  // kCallEnd: the model finished writing the arguments

  bool operator==(const ChatDelta&) const = default;
};

using ChatDeltas = std::vector<ChatDelta>;

}  // namespace slipstream
