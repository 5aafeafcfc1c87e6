// `slipstream show MODEL`: describes a model and whether it fits into this machine.
// Reads only headers.
#pragma once

#include <string>

namespace slipstream::show {

struct Options {
  std::string model;                 // a GGUF file or org/repo[:quant]
  bool shows_template_only = false;  // the complete template, and nothing else
};

// Returns the exit status.
int run(const Options& options);

}  // namespace slipstream::show
