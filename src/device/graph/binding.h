// Decides once for each cache tensor whether it is compressed. The decision is made when libllama
// first shows an attention that reads the tensor. It does so while it reserves memory, before
// anything is written.
//
// Threads: one thread at a time for each cache; models share nothing.
#pragma once

#include <ggml.h>

#include <map>
#include <set>
#include <string>

#include "base/result.h"

namespace slipstream::turbo {

// Binds the caches that a FLASH_ATTN_EXT reads, if they are not bound yet.
[[nodiscard]] Result<void> bind_attention(const ggml_tensor* op);

// Whether attention on tiles can compute a FLASH_ATTN_EXT on caches that are bound. Every node has
// to be checked, because nodes may read one cache in different shapes.
[[nodiscard]] bool suits_tiles(const ggml_tensor* op);

// Binds every cache that the op touches and that is still unbound to plain memory.
[[nodiscard]] Result<void> bind_rest(const ggml_tensor* op);

// Logs once how the caches of a graph were bound, with one line for all layers bound alike.
class BindingNotes {
 public:
  // Takes the notes of the caches that a node touches.
  void take(const ggml_tensor* op);
  void log() const;

 private:
  std::map<std::string, std::set<int>> layers_;  // by note
};

}  // namespace slipstream::turbo
