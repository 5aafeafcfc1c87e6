// Profile: the evidence of a calibration in a file, and the model it belongs to. Beside it, under
// the name in "keys", is what was fitted to the model's keys; the evidence covers both.
//   { "format": 3, "slipstream": "0.1.0", "model": {"fingerprint": "...", "file": "..."},
//     "keys": "....keys", "created": "...", "llama_cpp": "...", "ggml": "...", "machine": {...},
//     "evidence": {...} }
//
// Evidence is valid for one codec: a profile of another slipstream version is not used.
//
// Threads: thread-safe.
// Errors:  load_profile(): those of the file; kCorrupt if it cannot be parsed, kUnsupported for
//          another version, kInvalidArgument for another model. write_profile(): those of the file,
//          which is written completely or not at all.
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

// 3: figures are for keys in codes that are fitted to them.
inline constexpr int kProfileFormat = 3;

struct Profile {
  std::string slipstream;   // version
  std::string fingerprint;  // of the model only, hexadecimal
  std::string model_file;
  std::filesystem::path keys = {};  // fitted to its keys; empty: nothing
  std::string created;
  std::string llama_cpp;
  std::string ggml;
  nlohmann::json machine = {};
  Evidence evidence = {};
};

// `profile.keys` is copied into the same folder.
[[nodiscard]] Result<void> write_profile(const Profile& profile, const std::filesystem::path& path);
[[nodiscard]] Result<Profile> load_profile(const std::filesystem::path& path,
                                           std::string_view fingerprint,
                                           std::string_view slipstream);

// Every scheme that was measured as a whole, the least divergence first.
[[nodiscard]] std::vector<SchemeEvidence> measured_schemes(const Evidence& evidence);

// Why the evidence calls a scheme broken, with the figure; nullopt if it does not.
[[nodiscard]] std::optional<std::string> why_broken(const Evidence& evidence,
                                                    const KvScheme& scheme);

}  // namespace slipstream::calibrate
