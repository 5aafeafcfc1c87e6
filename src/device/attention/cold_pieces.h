// run_cold_pieces: computes pieces of attention whose codes may lie in a file.
//
// What a piece has chosen is held in groups of chunks, and their reads are under way together. While one
// group is computed the next one is read: of the same piece, or of the thread's next one, which has
// prepared its queries and chosen before.
//
// Threads: as run_attention(). Errors: std::bad_alloc; kIo.
#pragma once

#include <span>

#include "device/attention/attention.h"

namespace slipstream::turbo {

[[nodiscard]] bool has_cold_codes(const AttentionTask& task);

// REQUIRES: as for run_attention(); if AMX is used, this thread has an AmxScope for the task's shape.
[[nodiscard]] Result<void> run_cold_pieces(const AttentionTask& task,
                                           std::span<const Piece> pieces);

}  // namespace slipstream::turbo
