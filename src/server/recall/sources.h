// Where text comes from that the server added to a conversation.
//
// Threads: plain data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace slipstream {

struct RecallSource {
  std::string project = {};  // its root; empty: the conversation itself
  std::string path = {};     // relative to it
  int first_line = 0;
  int last_line = 0;
};

// The places that a conversation shows, in the order of their numbers, from 1 on.
struct ShownSources {
  std::vector<RecallSource> all = {};
  std::size_t n_before = 0;  // how many stand before messages earlier than the user's last
};

}  // namespace slipstream
