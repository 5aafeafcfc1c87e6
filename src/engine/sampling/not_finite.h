// Floats that no model should compute, for tests.
#pragma once

#include <limits>

namespace slipstream {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace slipstream
