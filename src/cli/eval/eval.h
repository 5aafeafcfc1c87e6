// `slipstream eval MODEL --kv q4_0,turbo4`: what a KV cache costs in quality, against f16
// (docs/eval.md). Tables go to standard output; progress goes to standard error.
//
// add_eval() declares the command and, hidden, the one that measures a single scheme in a process
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
  std::string schemes = "q8_0,q4_0,turbo8v4,turbo4,turbo3";
  std::string plugin;   // empty: beside this program
  std::string out;      // where the report's files go; empty: nowhere
  std::string fail_on;  // a verdict; empty: none is a failure
};

class Command {
 public:
  explicit Command(CLI::App& app);
  // The exit status; nothing if it was not asked for.
  [[nodiscard]] std::optional<int> run() const;

 private:
  Options options_;
  CLI::App* eval_;
  CLI::App* arm_;
};

// A list of schemes, of which one may have commas of its own: "q4_0,turbo4,0-1=turbo8" are two.
[[nodiscard]] std::vector<std::string> split_schemes(const std::string& list);

// 0: done; 1: a scheme failed, or has the verdict of --fail-on or a worse one.
int eval(const Options& options);

}  // namespace slipstream::eval
