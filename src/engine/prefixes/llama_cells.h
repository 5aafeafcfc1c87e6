// LlamaCells: the cells of a context's KV cache, by sequence and position.
//
// Threads: owned by the thread that owns the context. Errors: none.
#pragma once

#include <llama.h>

#include "engine/prefixes/cells.h"

namespace slipstream {

class LlamaCells final : public Cells {
 public:
  explicit LlamaCells(llama_context* context) : memory_(llama_get_memory(context)) {}

  void copy(SeqId from, SeqId to, int first, int end) override {
    llama_memory_seq_cp(memory_, from, to, first, end);
  }
  bool remove(SeqId seq, int first, int end) override {
    return llama_memory_seq_rm(memory_, seq, first, end);
  }

 private:
  llama_memory_t memory_;
};

}  // namespace slipstream
