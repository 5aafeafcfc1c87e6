// `slipstream pull org/repo[:quant]`: a model of the hub becomes files of the cache. Progress and
// remarks go to standard error, the path of the model to standard output.
#pragma once

#include <string>

namespace slipstream::pull {

struct Options {
  std::string model;
  int n_connections = 4;
  int n_retries = 5;
};

// The exit status.
int run(const Options& options);

}  // namespace slipstream::pull
