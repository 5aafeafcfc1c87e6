// `slipstream calibrate MODEL`: finds the smallest KV scheme that a model tolerates and
// stores it for `--kv auto` (docs/calibrate.md). Tables go to standard output; progress goes
// to standard error.
//
// Command declares this command and a hidden one, which measures layers in a process of its own.
#pragma once

#include <optional>
#include <string>

#include "bench/calibrate/calibrate.h"
#include "bench/quality/verdict.h"

namespace CLI {
class App;
}

namespace slipstream::calibrate {

struct CommandOptions {
  Options work{.budget = quality::kFineUpTo.kl_mean};
  std::string out;  // empty: where --kv auto looks
};

class Command {
 public:
  explicit Command(CLI::App& app);
  // The exit status; nullopt if the command was not given.
  [[nodiscard]] std::optional<int> run() const;

 private:
  CommandOptions options_;
  CLI::App* calibrate_;
  CLI::App* probe_;
};

// Returns 0 if done, 1 if it failed.
int run(const CommandOptions& options);

}  // namespace slipstream::calibrate
