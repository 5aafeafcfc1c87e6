// slipstream doctor: reports what this machine offers for running models and, for everything that
// is missing or slow, what to do about it.
//
// Threads: call from one thread. Errors: none; what cannot be determined is itself a finding.
#pragma once

#include <string>

namespace slipstream::doctor {

struct Options {
  std::string model_dir = ".";
  std::string model;  // reports what this model needs here; empty: none
};

// Prints the report to standard output. Returns 1 if something is missing without which
// no model runs.
int run(const Options& options);

}  // namespace slipstream::doctor
