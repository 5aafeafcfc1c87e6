// Cache rows: compares, token by token, what is read back from a compressed cache with f16's cache
// of the same text. Divergence is a mean over a text, so one lost tile in one layer hardly changes
// it. Here a lost tile stands out in any model.
//
//   record_rows(f16_context, "rows");
//   Result<RowFigures> figures = compare_rows(turbo_context, "rows");
//
// Both contexts have read the same text into sequence 0 and nothing else.
//
// Threads: for the thread that owns the context.
// Errors:  those of the file and of PackedState; kCorrupt for rows of another text or context.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

struct llama_context;

namespace slipstream::quality {

// A row is the keys or the values of one token in one layer.
struct RowFigures {
  int n_rows = 0;         // compressed rows; 0 for stock's schemes
  double error_mean = 0;  // squared distance from f16's row, relative to how f16's rows vary
  int n_lost = 0;         // length of the longest run of lost rows in one layer's keys or values
  int first_lost = 0;     // where this run begins
};

// A row that is lost or belongs elsewhere has an error of 1 or more. With 2 bits, the fewest that
// exist, the mean error over the needle model's layers is 0.18 (docs/eval.md), and none of its rows
// exceeds this limit.
inline constexpr double kLostError = 0.8;

// The limit for the file. The rows of a long text may exceed it.
inline constexpr std::uint64_t kRowBytesMax = std::uint64_t{1} << 30;
[[nodiscard]] std::uint64_t row_bytes(llama_context* context);

[[nodiscard]] Result<void> record_rows(llama_context* context, const std::string& path);
[[nodiscard]] Result<RowFigures> compare_rows(llama_context* context, const std::string& path);

// Compares one layer's keys or values, with n_channels f16 numbers for each token.
[[nodiscard]] RowFigures compare_layer(std::span<const std::uint16_t> base,
                                       std::span<const std::uint16_t> found,
                                       std::size_t n_channels);

}  // namespace slipstream::quality
