// Symbol: something that a file defines: a function, a class, a heading.
//
// Threads: plain data.
#pragma once

#include <string>

namespace slipstream {

struct Symbol {
  std::string name;
  std::string kind;    // as ctags calls it: "function", "class", "section", ...
  std::string scope;   // of what it is a part, such as its class; empty: of nothing
  int first_line = 0;  // from 1
  int last_line = 0;   // 0: not known
};

}  // namespace slipstream
