// Where calibration profiles are kept, and the one of a model.
//
//   $XDG_DATA_HOME/slipstream/calibration/FINGERPRINT.json and .keys, else in ~/.local/share
//
// Threads: thread-safe.
// Errors:  find_kv_profile(): none; what cannot be used is a warning in the log that says what to
//          do.
#pragma once

#include <filesystem>
#include <optional>

#include "bench/calibrate/profile.h"

namespace slipstream {

[[nodiscard]] std::filesystem::path kv_profile_directory();

// In `file`; empty: where calibrate writes it.
[[nodiscard]] std::optional<calibrate::Profile> find_kv_profile(const std::filesystem::path& model,
                                                                std::filesystem::path file);

// What calibration fitted to the model's keys; empty: nothing.
[[nodiscard]] std::filesystem::path find_key_profile(const std::filesystem::path& model);

}  // namespace slipstream
