// A model as a user names it on the command line: a GGUF file, or org/repo[:quant] of one that is
// installed.
//
// Threads: thread-safe. Errors: kNotFound, with the command that would install it.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace slipstream {

// The file; of a model in several parts the first. What is neither a file nor the name of a model
// is given back, so that whoever opens it says what is wrong.
[[nodiscard]] Result<std::filesystem::path> find_model(const std::string& name);

}  // namespace slipstream
