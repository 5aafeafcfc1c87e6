// Finds libggml-turbo.so beside this program or library, in an installation or in a build tree.
//
// Threads: thread-safe. Errors: kNotFound with the places that were searched.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace slipstream {

[[nodiscard]] Result<std::filesystem::path> find_turbo_plugin();

}  // namespace slipstream
