// PackedState: saves a sequence and restores it as the KV cache holds it.
//
// libllama writes every row of its cache into a sequence's state, and the turbo device shows it f16
// rows: four times what it stores, and encoded anew when they come back. With the device's packed
// rows (src/device/kv_buffer/packed_rows.h) a saved sequence has the size of its codes, and comes
// back with the same codes, in this process or the next: generation goes on as if never
// interrupted. Caches that are not compressed, and all caches without the device, are saved as
// libllama does. Bytes: docs/formats/packed-state.md.
//
// Threads: const and thread-safe; the context as libllama says, from the thread that owns it.
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
  // Looks for the device in ggml's registry: to be made after the model is loaded.
  PackedState();

  // What is returned holds the sequence and nothing else of the context.
  [[nodiscard]] Result<std::vector<std::byte>> save(llama_context* context, SeqId seq) const;

  // Replaces the sequence. On failure it is empty. The bytes must be what save() returned: what is
  // ours is checked and refused, but libllama trusts its part (it reserves memory for as many cells
  // as a number says, and aborts on positions that cannot be). A file therefore carries a checksum,
  // and nothing that fails it comes here.
  [[nodiscard]] Result<void> restore(llama_context* context, SeqId seq,
                                     std::span<const std::byte> bytes) const;

 private:
  turbo::BeginPacking::Function* begin_packing_ = nullptr;  // all or none of them
  turbo::BeginUnpacking::Function* begin_unpacking_ = nullptr;
  turbo::EndPackedRows::Function* end_ = nullptr;
};

}  // namespace slipstream
