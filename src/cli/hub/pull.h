// `slipstream pull org/repo[:quant]`: downloads a model from the hub into the cache. Progress and
// remarks go to standard error, the path of the model to standard output.
#pragma once

#include <string>

namespace slipstream::pull {

struct Options {
  std::string model;
  int n_connections = 4;
  int n_retries = 5;
};

// Returns the exit status.
int run(const Options& options);

}  // namespace slipstream::pull
