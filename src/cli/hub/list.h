// `slipstream list`: the models that are installed, on standard output.
#pragma once

#include <chrono>
#include <span>
#include <string>

#include "hub/installed.h"

namespace slipstream::list {

struct Options {
  bool shows_paths = false;
};

// Returns the exit status.
int run(const Options& options);

// One line per model, with aligned columns.
[[nodiscard]] std::string format_models(std::span<const hub::InstalledModel> models,
                                        std::chrono::sys_seconds now, bool shows_paths);

}  // namespace slipstream::list
