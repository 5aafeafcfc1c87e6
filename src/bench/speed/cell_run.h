// run_cell(): measures one cell, in a process that does nothing else.
//
// The engine is libllama as packaged; with f16, q8_0 and q4_0 the plugin is not loaded at all.
// Every sequence has its own KV cache, or all share the cells of the depth. The depth is computed once
// in one sequence, kept in a file for the next process that needs it, repeated if the cell is deeper
// (n_computed()), and copied to the other sequences. After it, each sequence continues with its own
// text. Tokens come from the text, not from the model, so that every scheme computes the same. One
// step before the measurement is not counted.
//
// Threads: call from one thread.
// Errors:  those of Model::load; kOutOfMemory for a context that does not fit; kInvalidArgument for a
//          text without tokens; kIo for the kept state.
#pragma once

#include <functional>

#include "base/result.h"
#include "bench/speed/cell.h"

namespace slipstream::bench {

// on_progress: from 0 to 1.
[[nodiscard]] Result<CellFigures> run_cell(const CellTask& task,
                                           const std::function<void(double)>& on_progress);

}  // namespace slipstream::bench
