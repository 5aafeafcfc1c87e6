// Decides, once for each cache tensor, whether it is compressed: when libllama first shows an
// attention that reads it, which it does while it reserves memory, before anything is written.
//
// Threads: one at a time for each cache; nothing is shared between models.
#pragma once

#include <ggml.h>

#include <map>
#include <set>
#include <string>

#include "base/result.h"

namespace slipstream::turbo {

// Binds the caches that a FLASH_ATTN_EXT reads, if they are not bound yet.
[[nodiscard]] Result<void> bind_attention(const ggml_tensor* op);

// Whether attention on tiles can compute a FLASH_ATTN_EXT on caches that are bound. Asked of every
// node: they may read one cache in different shapes.
[[nodiscard]] bool suits_tiles(const ggml_tensor* op);

// Binds every cache that the op touches and that is still unbound to plain memory.
[[nodiscard]] Result<void> bind_rest(const ggml_tensor* op);

// What the log says of the caches of a graph: in one line for those that were bound alike, once.
class BindingNotes {
 public:
  // Of the caches that a node touches.
  void take(const ggml_tensor* op);
  void log() const;

 private:
  std::map<std::string, std::set<int>> layers_;  // by what is said of them
};

}  // namespace slipstream::turbo
