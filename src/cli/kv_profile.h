// Where calibration profiles are stored, and how to find a model's profile.
//
//   $XDG_DATA_HOME/slipstream/calibration/FINGERPRINT.json and .keys, else in ~/.local/share
//
// Threads: thread-safe.
// Errors:  find_kv_profile(): none; for a profile that cannot be used, a warning in the log says
//          what to do.
#pragma once

#include <filesystem>
#include <optional>

#include "bench/calibrate/profile.h"

namespace slipstream {

[[nodiscard]] std::filesystem::path kv_profile_directory();

// Reads the profile in `file`. If `file` is empty, looks where calibrate writes it.
[[nodiscard]] std::optional<calibrate::Profile> find_kv_profile(const std::filesystem::path& model,
                                                                std::filesystem::path file);

// The file that calibration fitted to the model's keys; empty if there is none.
[[nodiscard]] std::filesystem::path find_key_profile(const std::filesystem::path& model);

}  // namespace slipstream
