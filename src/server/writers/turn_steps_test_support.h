// Test support for writers: makes steps of a turn, and replaces ids and times in what is written.
//
// Threads: immutable. Errors: none.
#pragma once

#include <regex>
#include <string>
#include <utility>

#include "server/turn/turn.h"

namespace slipstream {

inline std::string without_ids(const std::string& text) {
  const std::string ids = std::regex_replace(text, std::regex("([-_])[0-9a-f]{32}"), "$1ID");
  return std::regex_replace(ids, std::regex("\"(created|created_at|completed_at)\":[0-9]+"),
                            "\"$1\":0");
}

inline TurnStep step_of(ChatDeltas deltas) { return {.choice = 0, .deltas = std::move(deltas)}; }
inline TurnStep last_step(TurnEnd end) { return {.choice = 0, .end = std::move(end)}; }

}  // namespace slipstream
