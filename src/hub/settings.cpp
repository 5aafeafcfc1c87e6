#include "hub/settings.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "base/unique_fd.h"
#include "hub/model_name.h"

namespace slipstream::hub {
namespace {

// The value if it is set and not empty. huggingface_hub also treats an empty variable as unset.
std::optional<std::string> value_of(const Environment& environment, const char* name) {
  std::optional<std::string> value = environment(name);
  if (value && value->empty()) return std::nullopt;
  return value;
}

std::filesystem::path find_home(const Environment& environment) {
  if (const auto home = value_of(environment, "HF_HOME")) return *home;
  if (const auto cache = value_of(environment, "XDG_CACHE_HOME")) {
    return std::filesystem::path(*cache) / "huggingface";
  }
  return std::filesystem::path(value_of(environment, "HOME").value_or(".")) / ".cache" /
         "huggingface";
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

Result<std::string> find_token(const Environment& environment, const std::filesystem::path& home) {
  std::string token;
  if (const auto given = value_of(environment, "HF_TOKEN")) {
    token = trimmed(*given);
  } else {
    const std::string path =
        value_of(environment, "HF_TOKEN_PATH").value_or((home / "token").string());
    const Result<std::string> text = read_small_file(path);
    if (!text && text.error().code != Code::kNotFound) return std::unexpected(text.error());
    if (text) token = trimmed(*text);
  }
  // The token becomes part of a header. It is not shown, because errors end up in logs.
  if (!std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7f; })) {
    return fail(Code::kInvalidArgument,
                "the token (HF_TOKEN or its file) has characters that are not allowed in a token");
  }
  return token;
}

}  // namespace

Result<Settings> read_settings(const Environment& environment) {
  Settings settings{
      .endpoint = value_of(environment, "HF_ENDPOINT").value_or("https://huggingface.co"),
      .token = {},
      .cache = {},
      .is_offline = false};
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  if (!settings.endpoint.starts_with("https://") && !settings.endpoint.starts_with("http://")) {
    return fail(Code::kInvalidArgument,
                format_text("HF_ENDPOINT is '{}': it has to start with https:// or http://",
                            settings.endpoint));
  }
  const std::filesystem::path home = find_home(environment);
  Result<std::string> token = find_token(environment, home);
  if (!token) return std::unexpected(std::move(token.error()));
  settings.token = std::move(*token);
  const auto cache = value_of(environment, "HF_HUB_CACHE");
  settings.cache = cache ? std::filesystem::path(*cache) : home / "hub";
  const std::string offline = upper_case(value_of(environment, "HF_HUB_OFFLINE").value_or(""));
  settings.is_offline = offline == "1" || offline == "ON" || offline == "YES" || offline == "TRUE";
  return settings;
}

Result<Settings> read_settings() {
  return read_settings([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  });
}

}  // namespace slipstream::hub
