// Whether a model has a layer that predicts a token further, which can be used here. Its file tells:
// libllama aborts where it meets such a layer that it cannot compute.
//
// Threads: thread-safe.
// Errors:  those of gguf_model.h; kUnsupported, with one sentence that says what is missing.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace slipstream {

[[nodiscard]] Result<void> check_mtp_layer(const std::filesystem::path& model);

}  // namespace slipstream
