// run_cell(): measures one cell, in a process that does nothing else.
//
// The engine is libllama as packaged; with f16, q8_0 and q4_0 the plugin is not loaded at all.
// Every sequence has its own KV cache. The depth is computed once in one sequence, kept in a file
// for the next process that needs it, and copied to the other sequences. After it, each sequence
// continues with its own text. Tokens come from the text, not from the model, so that every scheme
// computes the same. One step before the measurement is not counted.
//
// Threads: call from one thread.
// Errors:  those of Model::load; kInvalidArgument for a text without tokens; kIo for
//          the kept state.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "bench/speed/cell.h"

namespace slipstream::bench {

// on_progress: from 0 to 1.
[[nodiscard]] Result<CellFigures> run_cell(const CellTask& task,
                                           const std::function<void(double)>& on_progress);

// Changes the number of streams in the state of sequence 0. libllama gives every sequence a stream
// of cells, and accepts a sequence's state only if it was saved with the same number of streams.
// This number is the third word of the state; the cells of each stream follow. Only the stream of
// sequence 0 has cells. Each of the others is one word at the end. A state that cannot be one is
// left as it is: libllama will refuse it.
void set_streams(std::vector<std::uint8_t>& state, std::uint32_t n_streams);

}  // namespace slipstream::bench
