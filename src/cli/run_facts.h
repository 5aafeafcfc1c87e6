// What a benchmark or an evaluation says about itself: which model, by which engine, on which
// machine.
//
// Threads: thread-safe. Errors: as of the model's file.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/result.h"

namespace slipstream {

// name, bytes, fingerprint of the model; versions of the engine.
[[nodiscard]] Result<nlohmann::json> describe_model(const std::filesystem::path& model);
// CPU, cores, memory and its speed, kernel, load.
[[nodiscard]] nlohmann::json describe_machine();

}  // namespace slipstream
