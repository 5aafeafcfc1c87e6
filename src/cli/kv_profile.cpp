#include "cli/kv_profile.h"

#include <cstdlib>

#include "base/format.h"
#include "base/log.h"
#include "cli/version.h"
#include "engine/model/model_fingerprint.h"

namespace slipstream {
namespace {

// The variable's value, if it is set and not empty.
std::optional<std::filesystem::path> directory_of(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace

std::filesystem::path kv_profile_directory() {
  const std::filesystem::path home = directory_of("HOME").value_or(".");
  return directory_of("XDG_DATA_HOME").value_or(home / ".local" / "share") / "slipstream" /
         "calibration";
}

std::optional<calibrate::Profile> find_kv_profile(const std::filesystem::path& model,
                                                  std::filesystem::path file) {
  const bool is_named = !file.empty();
  std::error_code error;
  // Most users have no profiles, and a fingerprint takes a second for a large model.
  if (!is_named && !std::filesystem::exists(kv_profile_directory(), error)) return std::nullopt;
  const Result<Fingerprint> fingerprint = fingerprint_of_model(model);
  if (!fingerprint) return std::nullopt;  // loading the model will report why
  const std::string id = to_hex(*fingerprint);
  if (!is_named) file = kv_profile_directory() / (id + ".json");
  Result<calibrate::Profile> profile = calibrate::load_profile(file, id, kVersion);
  if (profile) return std::move(*profile);
  if (is_named || profile.error().code != Code::kNotFound) {
    log::warn("kv.profile", {{"ignored", profile.error().message}});
  }
  return std::nullopt;
}

std::filesystem::path find_key_profile(const std::filesystem::path& model) {
  const std::optional<calibrate::Profile> profile = find_kv_profile(model, {});
  return profile ? profile->keys : std::filesystem::path();
}

}  // namespace slipstream
