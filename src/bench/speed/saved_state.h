// Edits the saved state of sequence 0, as PackedState::save() returns it. Its rest begins as libllama's
// own state does: two words of header, the number of streams of cells, and for each stream the number
// of its cells, the cells and their rows. A cell begins with its position.
//
// Threads: thread-safe. Errors: a state that cannot be one is left as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace slipstream::bench {

// Changes the number of streams. libllama gives every sequence a stream of cells, unless they share
// cells, and accepts a sequence's state only if it was saved with the same number of streams. Only
// the stream of sequence 0 has cells. Each of the others is one word at the end.
void set_streams(std::vector<std::byte>& state, std::uint32_t n_streams);

// Moves the cells, which are in order and begin at position `from`, to begin at position `to`.
// Keys keep the rotation of their old position. Returns false if the state has other cells.
[[nodiscard]] bool move_cells(std::span<std::byte> state, int from, int to);

}  // namespace slipstream::bench
