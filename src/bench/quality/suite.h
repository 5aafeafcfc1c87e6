// The quality suite: f16 first, then each scheme in a process of its own, compared with f16.
//
// A scheme whose process fails or dies has an error instead of figures, and the others continue.
// Without f16 there is nothing to compare with.
//
// Threads: as child.h.
// Errors:  kInvalidArgument for no schemes; the error of f16 if it failed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/quality/arm.h"
#include "bench/quality/verdict.h"

namespace slipstream::quality {

struct SuiteOptions {
  ArmOptions arm;                        // its kv is set to each scheme in turn
  std::vector<std::string> schemes;      // f16 need not be among them
  std::vector<std::string> arm_command;  // runs answer_as_arm() in another process
};

struct SchemeResult {
  std::string kv;
  std::string error = {};  // why there are no figures; empty if there are
  ArmResult found = {};
  std::optional<Judgement> judgement = {};  // nullopt for f16, and if nothing was judged
};

// The first result is that of f16.
[[nodiscard]] Result<std::vector<SchemeResult>> run_suite(const SuiteOptions& options,
                                                          const OnProgress& on_progress);

// Runs one scheme. f16 must be the first one in its folder.
[[nodiscard]] Result<ArmResult> run_arm_in_child(const SuiteOptions& options, const std::string& kv,
                                                 const OnProgress& on_progress);

// The other end (child_task.h). Returns the exit status.
int answer_as_arm();

}  // namespace slipstream::quality
