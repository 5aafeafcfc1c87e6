// `slipstream calibrate MODEL`: the smallest KV scheme that a model tolerates, written for
// `--kv auto` (docs/calibrate.md). Tables go to standard output; progress goes to standard error.
//
// Command declares it and, hidden, the one that measures layers in a process of its own.
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
  // The exit status; nothing if it was not asked for.
  [[nodiscard]] std::optional<int> run() const;

 private:
  CommandOptions options_;
  CLI::App* calibrate_;
  CLI::App* probe_;
};

// 0: done, 1: it could not be.
int run(const CommandOptions& options);

}  // namespace slipstream::calibrate
