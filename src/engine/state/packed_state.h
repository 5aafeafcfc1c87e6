// PackedState: saves and restores a sequence in the form in which the KV cache holds it.
//
// libllama writes every row of its cache into a sequence's state, and the turbo device presents
// rows as f16: four times what it stores, to be encoded again when restored. With the device's
// packed rows (src/device/kv_buffer/packed_rows.h) a saved sequence has the size of its codes and
// gets the same codes back, in this process or the next; generation continues as if uninterrupted.
// Uncompressed caches, and all caches without the device, are saved as libllama does. Bytes:
// docs/formats/packed-state.md.
//
// Threads: const and thread-safe; libllama's rules apply to the context: only its owner's thread.
// Errors:  save(): kOutOfMemory, kUnsupported. restore(): kCorrupt, kOutOfMemory, kUnsupported for
//          a state of another model or scheme, and when no cells are free.
#pragma once

#include <llama.h>

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "contract/plugin.h"
#include "engine/request.h"

namespace slipstream {

class PackedState {
 public:
  // Looks up the device in ggml's registry. REQUIRES: the model is loaded.
  // packs: false saves all rows as libllama does. A saved sequence then does not depend on which
  // machine has which layers.
  explicit PackedState(bool packs = true);

  // The result holds the sequence and nothing else of the context.
  [[nodiscard]] Result<std::vector<std::byte>> save(llama_context* context, SeqId seq) const;

  // Replaces the sequence; on failure it is empty. REQUIRES: save() returned the bytes. Our part is
  // checked, but libllama trusts its part: it reserves memory for any number of cells and aborts on
  // impossible positions. Files therefore have a checksum, and only bytes that pass it come here.
  [[nodiscard]] Result<void> restore(llama_context* context, SeqId seq,
                                     std::span<const std::byte> bytes) const;

 private:
  turbo::BeginPacking::Function* begin_packing_ = nullptr;  // all three are set, or none
  turbo::BeginUnpacking::Function* begin_unpacking_ = nullptr;
  turbo::EndPackedRows::Function* end_ = nullptr;
};

}  // namespace slipstream
