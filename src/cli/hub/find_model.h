// A model as a user names it on the command line: a GGUF file, or org/repo[:quant] of
// an installed model.
//
// Threads: thread-safe. Errors: kNotFound, with the command that would install it.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace slipstream {

// The path of the file; for a model in several parts, that of the first. A name that is neither a
// file nor a model's name is returned as it is, so that opening it reports what is wrong.
[[nodiscard]] Result<std::filesystem::path> find_model(const std::string& name);

}  // namespace slipstream
