// slipstream doctor: says what this machine has for running models and, for each thing that is
// missing or slow, what to do about it.
//
// Threads: call from one thread. Errors: none; what cannot be found out is itself a finding.
#pragma once

#include <string>

namespace slipstream::doctor {

struct Options {
  std::string model_dir = ".";
  std::string model;  // what it would need here; empty: none in particular
};

// Prints the report to standard output. 1 if something is missing without which no model runs.
int run(const Options& options);

}  // namespace slipstream::doctor
