// `slipstream mcp`: offers the folders of the index to an agent that starts this program
// (docs/mcp.md). Messages come on standard input and answers go to standard output, one on a line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace slipstream::mcp {

struct Options {
  std::string index;                 // empty: the user's
  std::vector<std::string> folders;  // only these; empty: all of the index
  bool clients_may_add = false;
  int n_threads = 0;  // that read files; 0: one per core
};

class Command {
 public:
  explicit Command(CLI::App& app);
  // The exit status; nullopt if the command was not given.
  [[nodiscard]] std::optional<int> run() const;

 private:
  Options options_;
  CLI::App* mcp_;
};

// Returns the exit status: 0 when standard input has ended, or on SIGTERM.
int mcp(const Options& options);

}  // namespace slipstream::mcp
