// Finding: one line of the doctor's report.
//
// Threads: immutable.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace slipstream::doctor {

enum class Status {
  kGood,     // as it should be
  kNote,     // works, but could be better: the advice says how
  kMissing,  // no model runs without it
};

struct Finding {
  Status status;
  std::string topic;   // "memory"
  std::string value;   // "23.4 GiB, 22.9 GiB free"
  std::string advice;  // what to do; empty for kGood
};

// Topics are aligned, advice is indented below its finding, and the last line is a summary.
std::string format_report(std::span<const Finding> findings);

}  // namespace slipstream::doctor
