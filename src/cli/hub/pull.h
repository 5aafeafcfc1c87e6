// `slipstream pull org/repo[:quant]`: downloads a model from the hub into the cache. Progress and
// remarks go to standard error, the path of the model to standard output.
#pragma once

#include <string>

#include "base/result.h"
#include "hub/pull.h"

namespace slipstream::pull {

struct Options {
  std::string model;
  int n_connections = 4;
  int n_retries = 5;
};

// Shows progress and remarks. Errors: those of hub::pull().
[[nodiscard]] Result<hub::Pulled> install(const Options& options);
// Returns the exit status.
int run(const Options& options);

}  // namespace slipstream::pull
