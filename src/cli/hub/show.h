// `slipstream show MODEL`: what a model is, and whether it fits into this machine. Reads headers
// only.
#pragma once

#include <string>

namespace slipstream::show {

struct Options {
  std::string model;                 // a GGUF file or org/repo[:quant]
  bool shows_template_only = false;  // whole, and nothing else
};

// The exit status.
int run(const Options& options);

}  // namespace slipstream::show
