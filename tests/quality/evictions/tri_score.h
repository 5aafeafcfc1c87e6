// tri_scores(): what TriAttention (arXiv 2604.04921) expects of a cell. Queries before RoPE lie around a
// centre that differs by head and not by token, so what a key will get from a query at any distance
// can be said of its centre q alone. With k the key, both as complex numbers by pairs of channels:
//
//   mean over distances d of  sum over pairs f of  Re(q_f conj(k_f) e^(i w_f d))
//   + sum over f of  (mean |q_f| - |q_f|) |k_f|
//
// The distances are those from 1, 2, 4, ... 65,536 tokens behind the text's end. Scores of each
// query head are normalised to mean 0 and deviation 1. As the authors' code has it.
//
// What differs from it: centres are those of the text itself, not of other texts; and the text is
// cut once, when it was read, where their code cuts what a model writes every 128 tokens and spares
// the prompt unless asked.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <vector>

#include "attention_record.h"

namespace slipstream::evictions {

// By [layer][head] of queries: a row of cells.
[[nodiscard]] std::vector<std::vector<float>> tri_scores(const AttentionRecord& record);

// The score of one cell's key, not normalised.
[[nodiscard]] double tri_score(const AttentionRecord& record, std::size_t layer, std::size_t head,
                               std::size_t cell);

}  // namespace slipstream::evictions
