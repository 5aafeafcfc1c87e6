// cut_lines(): some lines of a text, as many as one answer may have (McpLimits).
//
// Threads: pure function. Errors: none.
#pragma once

#include <string_view>

namespace slipstream {

struct Lines {
  std::string_view text;
  int first = 1;
  int last = 0;         // of those that are given; before first: there are none
  int n_all = 0;        // of the whole text
  bool is_cut = false;  // what was asked for is longer than one answer may be
};
[[nodiscard]] Lines cut_lines(std::string_view text, int first, int last);

}  // namespace slipstream
