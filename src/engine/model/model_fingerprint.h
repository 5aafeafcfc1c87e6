// What a saved state is valid for: this model, in this KV scheme, with this key profile and these
// rotations of positions, computed by these versions (fingerprint_of). And the model alone (fingerprint_of_model).
//
// A model is identified by its whole header (hyperparameters, vocabulary, names and offsets of
// tensors) and by the first, middle and last 4 KB of every tensor. This takes a second for the
// largest model; all of its bytes would take minutes.
//
// Threads: thread-safe. Errors: as in gguf_model.h, and those of reading the file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/model/rope_scaling.h"
#include "engine/prefixes/disk/prefix_file.h"

namespace slipstream {

struct Positions {
  RopeScaling rope = {};
  // Of the context: a model may have other rotations for long contexts (LongRoPE).
  std::int64_t n_ctx = 0;
};

[[nodiscard]] Result<Fingerprint> fingerprint_of(const std::filesystem::path& model,
                                                 std::string_view kv,
                                                 const std::filesystem::path& key_profile = {},
                                                 const Positions& positions = {});
[[nodiscard]] Result<Fingerprint> fingerprint_of_model(const std::filesystem::path& model);

// 64 lower-case hexadecimal digits.
[[nodiscard]] std::string to_hex(const Fingerprint& fingerprint);

}  // namespace slipstream
