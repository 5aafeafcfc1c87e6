// Profile: the evidence of a calibration in a file, and which model it is of.
//
//   { "format": 1, "slipstream": "0.1.0", "model": {"fingerprint": "...", "file": "..."},
//     "created": "...", "llama_cpp": "...", "ggml": "...", "machine": {...}, "evidence": {...} }
//
// Evidence is of one codec: a profile that another version of ours wrote is not used.
//
// Threads: thread-safe. Errors: load_profile(): as of the file, kCorrupt for one that cannot be
// read,
//          kUnsupported for another version's, kInvalidArgument for another model's.
//          write_profile(): as of the file; it is there whole or not at all.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "bench/calibrate/evidence.h"
#include "engine/memory/kv_scheme.h"

namespace slipstream::calibrate {

// 2: figures of caches that keep in 8 bits what is read most.
inline constexpr int kProfileFormat = 2;

struct Profile {
  std::string slipstream;   // version
  std::string fingerprint;  // of the model alone, hexadecimal
  std::string model_file;
  std::string created;
  std::string llama_cpp;
  std::string ggml;
  nlohmann::json machine = {};
  Evidence evidence = {};
};

[[nodiscard]] Result<void> write_profile(const Profile& profile, const std::filesystem::path& path);
[[nodiscard]] Result<Profile> load_profile(const std::filesystem::path& path,
                                           std::string_view fingerprint,
                                           std::string_view slipstream);

// Why the evidence calls a scheme broken, with the figure; nothing: it does not.
[[nodiscard]] std::optional<std::string> why_broken(const Evidence& evidence,
                                                    const KvScheme& scheme);

}  // namespace slipstream::calibrate
