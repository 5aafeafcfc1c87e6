// calibrate(): finds the smallest KV scheme that a model tolerates within a budget of divergence.
//
//   fit        codes for keys to the model's own keys (probe.h); all later steps use them
//   probe      what fewer bits cost in each group of layers (probe.h), on half of the chunks
//   choose     the fewest bytes whose costs add up to the budget (width_choice.h)
//   try        that scheme as a whole, like eval: divergence at each depth, needles
//   step back  to a part of the budget and try again, until there is no objection
//   limit      if asked for: what a query reads of that scheme (attend=N), to the fewest tokens to
//              which there is no objection (attend_limits.h)
//
// f16 and all schemes are read by the same kernels: the plugin's own where they are faster.
//
// Threads: as child.h.
// Errors:  those of the probe and of f16's arm (bench/quality/suite.h).
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/calibrate/evidence.h"
#include "bench/quality/arm.h"

namespace slipstream::calibrate {

struct Options {
  std::string model = {};
  std::string plugin = {};
  std::string text = {};         // a file; empty: plain_text()
  std::string scratch = {};      // a directory for log-probabilities
  std::string key_profile = {};  // where the data fitted to keys is written
  // For trials; the probe uses the first. Empty: the default ones that the model allows.
  std::vector<int> depths = {};
  int n_chunks = 2;  // of trials; the probe, which reads them dozens of times, takes half
  int n_needle_texts = 1;
  int n_layers_together = 0;  // 0: so that there are kGroupsMax groups
  int n_threads = 0;
  std::string prompts = "auto";  // who reads prompts: "on" for the plugin's own kernels, "off"
  double budget = 0;             // for the mean KL divergence
  bool finds_attend = false;     // bits get half of the budget then, and the limit the rest
  std::vector<std::string> probe_command = {};  // runs answer_as_probe() in another process
  std::vector<std::string> arm_command = {};    // runs quality::answer_as_arm() in another process
};

// If f16 is slow at depth, a deeper trial of it would take longer than everything else.
inline constexpr std::array<int, 2> kDefaultDepths = {512, 1024};
// With a limit on what a query reads, the last depth: limits of up to half of it are tried.
inline constexpr int kAttendDepth = 8192;

// The progress from 0 to 1, and the current work.
using OnStage = std::function<void(double done, std::string_view what)>;

[[nodiscard]] Result<Evidence> calibrate(const Options& options, const OnStage& on_stage);

// The objection to a scheme; empty if there is none. Fills `trial` with what was found.
[[nodiscard]] std::string objection_to(const quality::ArmResult& found,
                                       const quality::ArmResult& f16, double budget, Trial& trial);

// Whether the objection to a trial is only that needles are lost. They are asked for only if there
// is no other objection.
[[nodiscard]] bool lost_needles_only(const Trial& trial);

}  // namespace slipstream::calibrate
