#include "device/products/few_columns.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace slipstream::turbo {
namespace {

// Rows that a thread takes at a time: pieces for each thread, so that one that is late costs
// little, and rows that the second cache keeps while groups of columns pass by.
constexpr std::int64_t kDotPiecesPerThread = 8;
constexpr std::int64_t kDotRowsMin = 8;
constexpr std::int64_t kDotRowsMax = 64;
// Packed columns that stay in the first cache while rows pass by: 24 KB.
constexpr std::int64_t kDotSlicePieces = 48;

constexpr std::int64_t n_dot_pieces(std::int64_t n_inner) {
  return (n_inner + kDotInner - 1) / kDotInner;
}

// Columns of the group that begins with `column`. Those behind the last are 0.
std::int64_t n_group_columns(std::int64_t column, std::int64_t n_columns) {
  const auto rest = static_cast<std::uint64_t>(n_columns - column);
  return std::min(dot_columns_max(), static_cast<std::int64_t>(std::bit_ceil(rest)));
}

}  // namespace

bool can_dot(ggml_type type) { return dot_kernel(type) != nullptr; }

std::size_t n_dot_bytes(std::int64_t n_inner, std::int64_t n_columns) {
  const std::int64_t n_max = dot_columns_max();
  const std::int64_t n_padded =
      n_columns / n_max * n_max +
      (n_columns % n_max == 0 ? 0 : n_group_columns(0, n_columns % n_max));
  return static_cast<std::size_t>(n_dot_pieces(n_inner) * n_padded) * sizeof(DotColumn);
}

DotTask::DotTask(const Product& product, std::byte* packed)
    : product_(product),
      packed_(reinterpret_cast<DotColumn*>(packed)),
      kernel_(dot_kernel(product.type)) {}

void DotTask::pack_columns(int thread_idx, int n_threads) {
  const std::int64_t n_pieces = n_dot_pieces(product_.n_inner);
  DotColumn* group = packed_;
  std::int64_t n_group = 0;
  for (std::int64_t first = 0; first < product_.n_columns; first += n_group) {
    n_group = n_group_columns(first, product_.n_columns);
    const std::int64_t n_units = n_group * n_pieces;
    for (std::int64_t unit = thread_idx; unit < n_units; unit += n_threads) {
      const std::int64_t column = first + unit % n_group;
      const std::int64_t k = unit / n_group * kDotInner;
      if (column >= product_.n_columns) {
        group[unit] = {};
        continue;
      }
      pack_dot_column(
          product_.columns + static_cast<std::size_t>(column) * product_.column_stride + k,
          std::min(kDotInner, product_.n_inner - k), group + unit);
    }
    group += n_units;
  }
}

void DotTask::multiply(int n_threads) {
  const std::int64_t n_rows =
      std::clamp(product_.n_rows / (kDotPiecesPerThread * n_threads), kDotRowsMin, kDotRowsMax);
  for (;;) {
    const std::int64_t first = next_row_.fetch_add(n_rows, std::memory_order_relaxed);
    if (first >= product_.n_rows) return;
    multiply_rows(first, std::min(n_rows, product_.n_rows - first));
  }
}

void DotTask::multiply_rows(std::int64_t first_row, std::int64_t n_rows) const {
  const std::int64_t n_pieces = n_dot_pieces(product_.n_inner);
  const std::byte* rows =
      product_.weights + static_cast<std::size_t>(first_row) * product_.row_bytes;
  const DotColumn* group = packed_;
  std::int64_t n_group = 0;
  for (std::int64_t first = 0; first < product_.n_columns; first += n_group) {
    n_group = n_group_columns(first, product_.n_columns);
    const std::int64_t n_slice = kDotSlicePieces / n_group;
    for (std::int64_t piece = 0; piece < n_pieces; piece += n_slice) {
      const std::int64_t k = piece * kDotInner;
      kernel_({.rows = rows + ggml_row_size(product_.type, k),
               .row_bytes = product_.row_bytes,
               .n_rows = n_rows,
               .n_inner = std::min(n_slice * kDotInner, product_.n_inner - k),
               .columns = group + piece * n_group,
               .n_group = n_group,
               .n_columns = std::min(n_group, product_.n_columns - first),
               .result = product_.result +
                         static_cast<std::size_t>(first) * product_.result_stride + first_row,
               .result_stride = product_.result_stride,
               .is_first = piece == 0});
    }
    group += n_pieces * n_group;
  }
}

}  // namespace slipstream::turbo
