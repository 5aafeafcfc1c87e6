// Where libggml-turbo.so lies: beside this program, installed or in a build tree.
//
// Threads: thread-safe. Errors: kNotFound with the places that were looked at.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace slipstream {

[[nodiscard]] Result<std::filesystem::path> find_turbo_plugin();

}  // namespace slipstream
