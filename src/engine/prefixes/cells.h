// Cells: which sequences hold which cells of the KV cache, without libllama's header. The cache is
// unified: a cell may belong to several sequences and becomes free when the last one releases it.
//
// Threads: owned by the engine thread. Errors: none; calls only change which sequence holds what.
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

  // `to` also holds the cells of `from` at positions [first, end). All of them must exist, and `to`
  // must have none of these positions: libllama would count them twice (llama_memory_seq_cp).
  virtual void copy(SeqId from, SeqId to, int first, int end) = 0;

  // `seq` releases the cells it has at positions [first, end) (llama_memory_seq_rm). Returns false if
  // it cannot: a recurrent state that has advanced does not go back.
  virtual bool remove(SeqId seq, int first, int end) = 0;
};

}  // namespace slipstream
