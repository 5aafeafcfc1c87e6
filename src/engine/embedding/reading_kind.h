// Which GGUF files hold a model that only reads, and the memory that it takes.
//
// Such a file names the pooling that makes one row of a text's tokens, or its architecture has no
// other use (BERT and its like).
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/forecast/gguf_model.h"

namespace slipstream {

enum class ReadingKind { kVectors, kRanks };

// nullopt: the model writes text.
[[nodiscard]] std::optional<ReadingKind> reading_kind(const GgufModel& model);

// The longest text that is read unless more is asked for, which takes memory: batches have the size
// of the longest text, and masks its square.
inline constexpr int kReadTokens = 2048;

// What fits into one text: n_asked (0: kReadTokens), or what the model was trained on.
[[nodiscard]] int read_tokens_max(const GgufModel& model, int n_asked);

// Upper bound of what weights and context take.
[[nodiscard]] std::uint64_t reading_bytes(const GgufModel& model, int n_tokens_max);

}  // namespace slipstream
