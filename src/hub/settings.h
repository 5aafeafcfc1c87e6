// Settings: the hub, the token and the place for models, from the environment variables that
// huggingface_hub and llama.cpp read, so that all of them share one cache.
//
//   HF_ENDPOINT                        the hub (https://huggingface.co)
//   HF_TOKEN, HF_TOKEN_PATH            the token; else the file $HF_HOME/token
//   HF_HUB_CACHE                       the cache; else $HF_HOME/hub
//   HF_HOME                            else $XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface
//   HF_HUB_OFFLINE                     1: no network requests
//
// Threads: immutable. Errors: kInvalidArgument for an invalid endpoint or token.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace slipstream::hub {

struct Settings {
  std::string endpoint;  // without a slash at the end
  std::string token;     // empty: none
  std::filesystem::path cache;
  bool is_offline = false;
};

// Returns nullopt for unset variables.
using Environment = std::function<std::optional<std::string>(const char* name)>;
[[nodiscard]] Result<Settings> read_settings(const Environment& environment);
// Reads the environment of this process.
[[nodiscard]] Result<Settings> read_settings();

}  // namespace slipstream::hub
