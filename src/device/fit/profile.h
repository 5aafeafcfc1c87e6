// FittedKeys: a profile in use. It tells which keys are stored in a basis of their own head.
//
// Threads: thread-safe. Errors: those of profile_file.h.
#pragma once

#include <ggml.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "device/fit/profile_file.h"

namespace slipstream::turbo {

using KeyBases = std::vector<HeadBasis>;  // one for each KV head of a layer

class FittedKeys {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const FittedKeys>> read(const std::string& path);
  // name: the name of the profile in the log.
  FittedKeys(KeyProfile profile, std::string name)
      : profile_(std::move(profile)), name_(std::move(name)) {}

  // The bases for the keys that a FLASH_ATTN_EXT reads from the cache of this layer. Null if the
  // profile has none, or if it is that of another model, which is logged once.
  [[nodiscard]] const KeyBases* bases_of(const ggml_tensor* attention, int layer) const;

 private:
  KeyProfile profile_;
  std::string name_;
  mutable std::atomic<bool> has_warned_ = false;
};

}  // namespace slipstream::turbo
