// fit_basis: computes, from the moments of one KV head, the directions in which its keys differ
// most as its queries see them. codec/key_fit.h says what the directions are and what they are for.
//
// Threads: thread-safe. Errors: none; a head with too few keys or queries has no basis.
#pragma once

#include <optional>

#include "device/codec/key_fit.h"
#include "device/fit/key_moments.h"

namespace slipstream::turbo {

[[nodiscard]] std::optional<HeadBasis> fit_basis(const HeadMoments& moments);

}  // namespace slipstream::turbo
