// The limits on what a query reads (attend=N) that calibration tries, and what it says of them.
//
// A limit is worth its memory and the time of choosing if it leaves out half of a text or more. So
// limits go up to half of the deepest text that is measured. What is measured there says nothing of
// deeper texts: the share that is read falls with the depth.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/calibrate/evidence.h"
#include "bench/quality/arm.h"

namespace slipstream::calibrate {

// The smallest first, each twice the one before; none if `depth_max` is too small for any.
[[nodiscard]] std::vector<std::int64_t> attend_limits(int depth_max);

// Adds what an arm found of a scheme to what is known of it at each depth: divergences, needles.
void add_findings(const quality::ArmResult& found, const quality::ArmResult& f16,
                  std::vector<DepthEvidence>& at);

// Why the limit was chosen, or none was, in a few sentences.
[[nodiscard]] std::string attend_reason(const AttendEvidence& attend);

}  // namespace slipstream::calibrate
