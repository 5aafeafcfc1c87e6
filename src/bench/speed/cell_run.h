// run_cell(): measures one cell, in a process that does nothing else.
//
// The engine is libllama as packaged; with f16, q8_0 and q4_0 our plugin is not loaded at all.
// Every sequence has a KV cache of its own. The depth is computed once, in one sequence, kept in a
// file for the next process that wants it, and copied to the other sequences; behind it each
// sequence goes on with a text of its own. Tokens are those of the text, not what the model would
// say: every scheme computes the same. One step before what counts is not counted.
//
// Threads: call from one thread.
// Errors:  as of Model::load; kInvalidArgument for a text without tokens; kIo for the kept state.
#pragma once

#include <functional>

#include "base/result.h"
#include "bench/speed/cell.h"

namespace slipstream::bench {

// on_progress: from 0 to 1.
[[nodiscard]] Result<CellFigures> run_cell(const CellTask& task,
                                           const std::function<void(double)>& on_progress);

}  // namespace slipstream::bench
