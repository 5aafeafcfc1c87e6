// Profile: the evidence of a calibration in a file, and which model it is of.
//
//   { "format": 3, "slipstream": "0.1.0", "model": {"fingerprint": "...", "file": "..."},
//     "keys": "....keys", "created": "...", "llama_cpp": "...", "ggml": "...", "machine": {...},
//     "evidence": {...} }
//
// Beside it, under the name in "keys", what was fitted to the model's keys: the evidence is of
// both.
//
// Evidence is of one codec: a profile that another version of ours wrote is not used.
//
// Threads: thread-safe.
// Errors:  load_profile(): as of the file, kCorrupt for one that cannot be read, kUnsupported for
//          another version's, kInvalidArgument for another model's. write_profile(): as of the
//          file; it is there whole or not at all.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/calibrate/evidence.h"
#include "engine/model/kv_scheme.h"

namespace slipstream::calibrate {

// 3: figures of keys in codes that are fitted to them.
inline constexpr int kProfileFormat = 3;

struct Profile {
  std::string slipstream;   // version
  std::string fingerprint;  // of the model alone, hexadecimal
  std::string model_file;
  std::filesystem::path keys = {};  // what was fitted to its keys; empty: nothing
  std::string created;
  std::string llama_cpp;
  std::string ggml;
  nlohmann::json machine = {};
  Evidence evidence = {};
};

// `profile.keys` is copied beside it.
[[nodiscard]] Result<void> write_profile(const Profile& profile, const std::filesystem::path& path);
[[nodiscard]] Result<Profile> load_profile(const std::filesystem::path& path,
                                           std::string_view fingerprint,
                                           std::string_view slipstream);

// Every scheme that was measured as a whole, the least divergence first.
[[nodiscard]] std::vector<SchemeEvidence> measured_schemes(const Evidence& evidence);

// Why the evidence calls a scheme broken, with the figure; nothing: it does not.
[[nodiscard]] std::optional<std::string> why_broken(const Evidence& evidence,
                                                    const KvScheme& scheme);

}  // namespace slipstream::calibrate
