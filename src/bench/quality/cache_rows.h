// Cache rows: whether what is read back from a compressed cache is what was written to it, token by
// token, against f16's cache of the same text. Divergence is a mean over a text, and one tile that
// is lost in one layer hardly moves it; here it stands out, whatever the model.
//
//   record_rows(f16_context, "rows");
//   Result<RowFigures> figures = compare_rows(turbo_context, "rows");
//
// Both contexts have read the same text into sequence 0 and nothing else.
//
// Threads: for the thread that owns the context.
// Errors:  as of the file and of PackedState; kCorrupt for rows of another text or context.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

struct llama_context;

namespace slipstream::quality {

// A row: the keys, or the values, of one token in one layer.
struct RowFigures {
  int n_rows = 0;         // that are compressed; 0 of stock's schemes
  double error_mean = 0;  // squared distance from f16's row, relative to how f16's rows vary
  int n_lost = 0;         // tokens of the longest run of lost rows in one layer's keys or values
  int first_lost = 0;     // where it begins
};

// Of a row that is lost, or holds what belongs elsewhere, the error is 1 or more; with 2 bits, the
// fewest there are, it is 0.18 in the mean of the needle model's layers (docs/eval.md), and no row
// of it is past this.
inline constexpr double kLostError = 0.8;

// A text may be too long for the file: kRowBytesMax.
inline constexpr std::uint64_t kRowBytesMax = std::uint64_t{1} << 30;
[[nodiscard]] std::uint64_t row_bytes(llama_context* context);

[[nodiscard]] Result<void> record_rows(llama_context* context, const std::string& path);
[[nodiscard]] Result<RowFigures> compare_rows(llama_context* context, const std::string& path);

// One layer's keys or values, n_channels f16 numbers for each token.
[[nodiscard]] RowFigures compare_layer(std::span<const std::uint16_t> base,
                                       std::span<const std::uint16_t> found,
                                       std::size_t n_channels);

}  // namespace slipstream::quality
