// ChatDelta: one step of an answer as a client of the chat API sees it.
//
// Deltas of one answer, in order: reasoning and content in any number and order; for each tool call
// one kCallBegin, any number of kCallArguments, one kCallEnd, with nothing of another kind between
// them. The arguments of a call, concatenated, are always one valid JSON object, also where the
// model was cut short: then they are closed as early as possible and the end is not `complete`.
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
  int call_idx = -1;     // of the kinds for calls: 0, 1, ...
  bool complete = true;  // kCallEnd: the model wrote the arguments to their end

  bool operator==(const ChatDelta&) const = default;
};

using ChatDeltas = std::vector<ChatDelta>;

}  // namespace slipstream
