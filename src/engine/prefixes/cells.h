// Cells: which sequences hold which cells of the KV cache, without libllama's header. The cache is
// unified: a cell may belong to several sequences, and is free again when the last one lets it go.
//
// Threads: owned by the engine thread. Errors: none; these only change who holds what.
#pragma once

#include <limits>

#include "engine/request.h"

namespace slipstream {

inline constexpr int kEndOfSequence = std::numeric_limits<int>::max();

class Cells {
 public:
  Cells() = default;
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;
  virtual ~Cells() = default;

  // `to` holds from's cells of positions [first, end) as well. All of them exist, and `to` has none
  // of these positions: libllama would count them twice (llama_memory_seq_cp).
  virtual void copy(SeqId from, SeqId to, int first, int end) = 0;

  // The sequence lets go of its cells of positions [first, end), those that it has
  // (llama_memory_seq_rm).
  virtual void remove(SeqId seq, int first, int end) = 0;
};

}  // namespace slipstream
