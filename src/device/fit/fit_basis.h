// fit_basis: from what was seen of one KV head the directions in which its keys differ most, as
// its queries see it: codec/key_fit.h says what they are and what for.
//
// Threads: thread-safe. Errors: none; a head with too little to go by has no basis.
#pragma once

#include <optional>

#include "device/codec/key_fit.h"
#include "device/fit/key_moments.h"

namespace slipstream::turbo {

[[nodiscard]] std::optional<HeadBasis> fit_basis(const HeadMoments& moments);

}  // namespace slipstream::turbo
