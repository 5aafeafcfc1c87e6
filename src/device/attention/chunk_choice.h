// choose_chunks: which chunks the queries of a piece read, if the scheme limits how many tokens a
// query reads ("attend=N", contract/scheme.h).
//
// The scores of all tokens are estimated from the signs of their keys (sign_kernels.h). A query
// reads the first chunk and the last ones, and of the others those with the largest estimates. What
// it does not read is hidden from it as if the mask hid it. While it sees little more than it may
// read, it reads all, because choosing would take longer: nothing is hidden, and the result is that
// of a scheme without a limit.
//
// Where a query sees more than eight times its limit, a first pass estimates from a quarter of the
// channels, but at least 64, those in which the query is largest. Only the chunks that do best in
// it are estimated from all channels, so that many signs are not read. Heads of up to 64 channels
// have one pass.
//
// The rows of different sequences choose for themselves, so their results do not depend on the
// batch. The rows of one prompt in a piece choose together and may read kPromptFactor times as
// many. The heads of a group choose together, because they share keys: a chunk counts by how near
// it comes to the largest estimate of a head.
//
// Threads: as PieceQueries. Errors: std::bad_alloc.
#pragma once

#include "device/attention/piece_context.h"
#include "device/attention/piece_queries.h"

namespace slipstream::turbo {

inline constexpr std::int64_t kPromptFactor = 2;
// Estimating scores takes up to a quarter of the time of reading the tokens, so a query reads all
// that it sees up to this share of its limit.
inline constexpr double kReadsAllUpTo = 4.0 / 3;

// The chunks of a second pass have this many times the tokens of the limit.
inline constexpr std::int64_t kCandidateFactor = 4;

// REQUIRES: if AMX is used, this thread has an AmxScope for the task's shape.
void choose_chunks(const PieceContext& context, PieceQueries& queries);

}  // namespace slipstream::turbo
