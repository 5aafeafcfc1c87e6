// The result of a calibration for people: the scheme, why, and what fewer bits cost layer by layer.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>

#include "bench/calibrate/evidence.h"

namespace slipstream::calibrate {

[[nodiscard]] std::string report_for_terminal(const Evidence& evidence);

}  // namespace slipstream::calibrate
