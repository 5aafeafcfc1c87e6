// AttentionRecord: what a model's attention did while it read a text, as far as policies of eviction
// ask for it. One number for each head and cell, and the keys and queries before RoPE.
//
// Threads: plain data. Errors: none.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace slipstream::evictions {

struct AttentionShape {
  std::size_t n_layers = 0;
  std::size_t n_heads = 0;  // of queries
  std::size_t n_kv_heads = 0;
  std::size_t n_channels = 0;  // of a head; RoPE turns channel i with channel i + n_channels / 2
  double rope_base = 0;

  [[nodiscard]] std::size_t n_keeping() const { return n_layers * n_kv_heads; }
};

// The last queries of the text, whose attention SnapKV goes by. The published one takes 32 to 64.
inline constexpr std::size_t kWindowTokens = 64;

struct AttentionRecord {
  AttentionRecord(const AttentionShape& its_shape, std::size_t n_text_cells)
      : shape(its_shape),
        n_cells(n_text_cells),
        mass(shape.n_layers * shape.n_heads * n_cells),
        window(mass.size()),
        keys(shape.n_keeping() * n_cells * shape.n_channels),
        query_sums(shape.n_layers * shape.n_heads * shape.n_channels),
        query_lengths(query_sums.size() / 2) {}

  // The attention that each cell got, by [layer][head]: a row of n_cells.
  [[nodiscard]] std::span<float> row(std::vector<float>& of, std::size_t layer, std::size_t head) {
    return std::span(of).subspan((layer * shape.n_heads + head) * n_cells, n_cells);
  }
  [[nodiscard]] std::span<const float> key(std::size_t layer, std::size_t kv_head,
                                           std::size_t cell) const {
    const std::size_t at = (layer * shape.n_kv_heads + kv_head) * n_cells + cell;
    return std::span(keys).subspan(at * shape.n_channels, shape.n_channels);
  }

  AttentionShape shape;
  std::size_t n_cells;
  std::vector<float> mass;            // [layer][head][cell], from all queries
  std::vector<float> window;          // the same, from the last kWindowTokens
  std::vector<float> keys;            // [layer][kv head][cell][channel]
  std::vector<double> query_sums;     // [layer][head][channel], over all queries
  std::vector<double> query_lengths;  // [layer][head][pair of channels]: sum of their lengths
};

}  // namespace slipstream::evictions
