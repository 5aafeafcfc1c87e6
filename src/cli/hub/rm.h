// `slipstream rm org/repo[:quant]`: removes an installed model, after a question.
#pragma once

#include <string>

namespace slipstream::rm {

struct Options {
  std::string model;
  bool is_sure = false;  // no question
};

// The exit status.
int run(const Options& options);

}  // namespace slipstream::rm
