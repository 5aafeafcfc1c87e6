// `slipstream rm org/repo[:quant]`: removes an installed model after asking.
#pragma once

#include <string>

namespace slipstream::rm {

struct Options {
  std::string model;
  bool is_sure = false;  // do not ask
};

// Returns the exit status.
int run(const Options& options);

}  // namespace slipstream::rm
