// The profile in use: which keys are stored in codes of their own head, and how.
//
// Threads: thread-safe. Errors: as of profile_file.h.
#pragma once

#include <ggml.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/fit/profile_file.h"

namespace slipstream::turbo {

using KeyBases = std::vector<HeadBasis>;  // one for each KV head of a layer

// For caches bound from now on; an empty path: none. After an error there is none.
[[nodiscard]] Result<void> use_profile(const std::string& path);
void use_profile(KeyProfile profile);

// For the keys that a FLASH_ATTN_EXT reads from the cache of this layer: null where there is no
// profile, or it is that of another model, which a line in the log says once.
[[nodiscard]] std::shared_ptr<const KeyBases> bases_of(const ggml_tensor* attention, int layer);

}  // namespace slipstream::turbo
