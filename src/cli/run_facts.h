// What a benchmark or an evaluation records about itself: the model, the engine and the machine.
//
// Threads: thread-safe. Errors: those of reading the model's file.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/result.h"

namespace slipstream {

// Name, size in bytes and fingerprint of the model; versions of the engine.
[[nodiscard]] Result<nlohmann::json> describe_model(const std::filesystem::path& model);
// CPU, cores, memory and its speed, kernel, load.
[[nodiscard]] nlohmann::json describe_machine();

}  // namespace slipstream
