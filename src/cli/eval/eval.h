// `slipstream eval MODEL --kv q4_0,turbo4`: measures what a KV cache costs in quality, compared
// with f16 (docs/eval.md). Tables go to standard output; progress goes to standard error.
//
// add_eval() declares this command and a hidden one, which measures a single scheme in a process
// of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/quality/arm.h"

namespace CLI {
class App;
}

namespace slipstream::eval {

struct Options {
  quality::ArmOptions arm;
  std::vector<std::string> schemes = {"q8_0", "q4_0", "turbo8v4", "turbo4", "turbo3"};
  std::string plugin;   // empty: beside this program
  std::string out;      // directory for the report; empty: none
  std::string fail_on;  // a verdict; empty: no verdict is a failure
};

class Command {
 public:
  explicit Command(CLI::App& app);
  // The exit status; nullopt if the command was not given.
  [[nodiscard]] std::optional<int> run() const;

 private:
  Options options_;
  CLI::App* eval_;
  CLI::App* arm_;
};

// Returns 0 if done; 1 if a scheme failed, or has the verdict of --fail-on or a worse one.
int eval(const Options& options);

}  // namespace slipstream::eval
