// What a saved state is valid for: this model, in this KV scheme, with what was fitted to its keys,
// computed by these versions. And the model alone, whoever computes it.
//
// A model is told from another by its whole header (hyperparameters, vocabulary, names and places
// of tensors) and by the first, middle and last 4 KB of every tensor: a second for the largest
// model, where all of its bytes would take minutes.
//
// Threads: thread-safe. Errors: as of gguf_model.h and of the file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/prefixes/disk/prefix_file.h"

namespace slipstream {

[[nodiscard]] Result<Fingerprint> fingerprint_of(const std::filesystem::path& model,
                                                 std::string_view kv,
                                                 const std::filesystem::path& key_profile = {});
[[nodiscard]] Result<Fingerprint> fingerprint_of_model(const std::filesystem::path& model);

// 64 lower-case digits.
[[nodiscard]] std::string to_hex(const Fingerprint& fingerprint);

}  // namespace slipstream
