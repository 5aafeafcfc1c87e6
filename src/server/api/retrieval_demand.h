// RetrievalDemand: what a request wants of the index: "retrieval" in all APIs for chats.
//
//   {"project": "/home/ann/notes", "budget": 1000}   of this project, at most so many tokens
//   {} or true                                       of the server's usual project, or of all
//   {"budget": 0}                                    nothing new: what was shown before stays
//   {"chat": "ID"}                                   of the files attached to this chat, and of the
//                                                    project that the server searches for everybody
//   {"chat": "ID", "project": ...}                   of both; false: of no project
//   false                                            nothing, whatever the server does usually
//
// Threads: plain data. Errors: kept in the JsonFields (json_fields.h).
#pragma once

#include <optional>
#include <string>

#include "server/api/json_fields.h"

namespace slipstream {

struct RetrievalDemand {
  bool is_on = true;
  std::optional<std::string> project = {};  // empty: the usual one, or all; none: not said
  bool wants_projects = true;
  std::string chat = {};                 // of whose attachments; empty: none
  std::optional<int> n_tokens_max = {};  // none: as many as usual
};

// None: the request says nothing about it.
[[nodiscard]] std::optional<RetrievalDemand> read_retrieval(JsonFields& fields);

}  // namespace slipstream
