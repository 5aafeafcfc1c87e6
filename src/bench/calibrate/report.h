// What a calibration found, for people: the scheme, why, and layer by layer what fewer bits cost.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>

#include "bench/calibrate/evidence.h"

namespace slipstream::calibrate {

[[nodiscard]] std::string report_for_terminal(const Evidence& evidence);

}  // namespace slipstream::calibrate
