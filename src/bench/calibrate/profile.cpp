#include "bench/calibrate/profile.h"

#include <fcntl.h>
#include <unistd.h>

#include <span>

#include "base/format.h"
#include "base/unique_fd.h"
#include "bench/calibrate/evidence_json.h"

namespace slipstream::calibrate {
namespace {

using nlohmann::json;

json with_attend(const Evidence& evidence) {
  json object = evidence;
  if (evidence.attend) object["attend"] = *evidence.attend;
  return object;
}

Evidence evidence_of(const json& object) {
  auto evidence = object.get<Evidence>();
  if (object.contains("attend")) evidence.attend = object["attend"].get<AttendEvidence>();
  return evidence;
}

json to_json_object(const Profile& profile) {
  return {{"format", kProfileFormat},
          {"slipstream", profile.slipstream},
          {"model", {{"fingerprint", profile.fingerprint}, {"file", profile.model_file}}},
          {"keys", profile.keys.filename().string()},
          {"created", profile.created},
          {"llama_cpp", profile.llama_cpp},
          {"ggml", profile.ggml},
          {"machine", profile.machine},
          {"evidence", with_attend(profile.evidence)}};
}

Profile from_json_object(const json& object) {
  return {.slipstream = object.at("slipstream"),
          .fingerprint = object.at("model").at("fingerprint"),
          .model_file = object.at("model").at("file"),
          .keys = object.at("keys").get<std::string>(),
          .created = object.at("created"),
          .llama_cpp = object.at("llama_cpp"),
          .ggml = object.at("ggml"),
          .machine = object.at("machine"),
          .evidence = evidence_of(object.at("evidence"))};
}

std::unexpected<Error> damaged(const std::filesystem::path& path, std::string_view what) {
  return fail(Code::kCorrupt, format_text("{} is damaged ({}): calibrate again, or remove it",
                                          path.string(), what));
}

// Copies the whole file or nothing.
Result<void> copy_keys(const std::filesystem::path& from, const std::filesystem::path& to) {
  const std::string unfinished = format_text("{}.{}", to.string(), getpid());
  std::error_code error;
  std::filesystem::copy_file(from, unfinished, error);
  if (!error) std::filesystem::rename(unfinished, to, error);
  if (!error) return {};
  const int why = error.value();
  std::filesystem::remove(unfinished, error);
  return fail_errno(why, format_text("cannot write {}", to.string()));
}

}  // namespace

Result<void> write_profile(const Profile& profile, const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  Profile named = profile;
  if (!profile.keys.empty()) {
    named.keys = std::filesystem::path(path).replace_extension(".keys");
    if (Result<void> copied = copy_keys(profile.keys, named.keys); !copied) return copied;
  }
  const std::string unfinished = format_text("{}.{}", path.string(), getpid());
  const std::string text = to_json_object(named).dump(1) + "\n";
  {
    const Result<UniqueFd> file = open_file(unfinished, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file) return std::unexpected(file.error());
    if (Result<void> written = write_exactly(file->get(), std::as_bytes(std::span(text)));
        !written) {
      std::filesystem::remove(unfinished, error);
      return written;
    }
  }
  std::filesystem::rename(unfinished, path, error);
  if (!error) return {};
  return fail_errno(error.value(), format_text("cannot write {}", path.string()));
}

Result<Profile> load_profile(const std::filesystem::path& path, std::string_view fingerprint,
                             std::string_view slipstream) {
  const Result<std::string> text = read_small_file(path.string());
  if (!text) return std::unexpected(text.error());
  Profile profile;
  try {
    const json object = json::parse(*text);
    const int format = object.at("format");
    const std::string version = object.at("slipstream");
    if (format != kProfileFormat || version != slipstream) {
      return fail(
          Code::kUnsupported,
          format_text(
              "{} was made by slipstream {} (format {}), this is {} (format {}): calibrate again",
              path.string(), version, format, slipstream, kProfileFormat));
    }
    profile = from_json_object(object);
  } catch (const json::exception& error) {
    return damaged(path, error.what());
  }
  if (profile.fingerprint != fingerprint) {
    return fail(Code::kInvalidArgument,
                format_text("{} was made for another model ({}): calibrate this one", path.string(),
                            profile.model_file));
  }
  if (const Result<KvScheme> scheme = parse_kv_scheme(profile.evidence.chosen); !scheme) {
    return damaged(path, scheme.error().message);
  }
  if (const auto& attend = profile.evidence.attend; attend && !attend->chosen.empty()) {
    const Result<KvScheme> scheme = parse_kv_scheme(attend->chosen);
    if (!scheme) return damaged(path, scheme.error().message);
    if (scheme->attend() == 0) return damaged(path, "a limit is missing");
  }
  if (!profile.keys.empty()) {
    profile.keys = path.parent_path() / profile.keys.filename();
    std::error_code error;
    if (!std::filesystem::exists(profile.keys, error)) {
      return damaged(path, format_text("{} is missing", profile.keys.string()));
    }
  }
  return profile;
}

}  // namespace slipstream::calibrate
