// Fitting keys: the plugin looks at the keys and queries of all that models on its device read in
// between, and writes what it found about each layer (docs/formats/key-profile.md).
//
// Threads: while no model computes. Errors: kUnsupported without the plugin or with one that
// cannot,
//          kIo for a file that cannot be written.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace slipstream {

[[nodiscard]] Result<void> begin_fitting_keys(const std::filesystem::path& file);
// How many layers were fitted.
[[nodiscard]] Result<int> end_fitting_keys();

}  // namespace slipstream
