// `slipstream bench MODEL --speculate`: what drafts give on this machine. A table for each KV scheme
// goes to standard output, and into speculation.md.
#pragma once

#include "cli/bench/bench.h"

namespace slipstream::bench {

// Returns the exit status: 0, or 1 if something could not be measured.
int run_speculation(const Options& options);

}  // namespace slipstream::bench
