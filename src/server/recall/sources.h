// Where text comes from that the server added to a conversation.
//
// Threads: plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace slipstream {

struct RecallSource {
  std::string project = {};  // its root; empty: the file is attached to a chat
  std::string chat = {};     // the id of that
  std::string path = {};     // relative to the root; of an attached file its name
  std::int64_t version = 0;  // of an attached file: another for each of its texts
  int first_line = 0;
  int last_line = 0;

  // Whether this place has all lines of the other.
  [[nodiscard]] bool covers(const RecallSource& other) const {
    return path == other.path && project == other.project && chat == other.chat &&
           version == other.version && first_line <= other.first_line &&
           last_line >= other.last_line;
  }
};

// The places that a conversation shows, in the order of their numbers, from 1 on.
struct ShownSources {
  std::vector<RecallSource> all = {};
  std::size_t n_before = 0;  // how many stand before messages earlier than the user's last
};

}  // namespace slipstream
