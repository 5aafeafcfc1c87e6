// CacheTensor: one tensor of libllama's KV cache ("cache_k_l0") in a TURBO buffer.
//
// libllama allocates the tensor before the head size is known. So it is unbound at first and has no
// memory. It is bound once, before the first write: to tiles of codes, or to plain memory of its
// own type if it cannot be compressed. The tensor's `data` only identifies it: nothing is read or
// written there. To callers the tensor has rows of its own type, whatever it is bound to.
//
// Threads: bind, set, get, memset, clear and copy from one thread at a time; the caches themselves
//          as compressed_cache.h says.
// Errors:  bind: kOutOfMemory. If codes may lie in a file (cold_chunks.h): kIo.
#pragma once

#include <ggml.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "base/mapping.h"
#include "base/result.h"
#include "device/kv_buffer/compressed_cache.h"

namespace slipstream::turbo {

class CacheTensor {
 public:
  // Whether a tensor is a cache tensor: its name is "cache_k_l<layer>" or "cache_v_l<layer>", and
  // it is not a view.
  [[nodiscard]] static bool is_cache(const ggml_tensor* tensor);

  explicit CacheTensor(const ggml_tensor* tensor);

  [[nodiscard]] Side side() const { return side_; }
  [[nodiscard]] int layer() const { return layer_; }
  [[nodiscard]] std::int64_t n_channels() const { return n_channels_; }
  [[nodiscard]] std::int64_t n_cells() const { return n_cells_; }
  [[nodiscard]] std::int64_t n_rows() const { return n_cells_ * n_streams_; }
  [[nodiscard]] std::size_t row_bytes() const { return row_bytes_; }
  [[nodiscard]] std::size_t stream_bytes() const {
    return row_bytes_ * static_cast<std::size_t>(n_cells_);
  }

  [[nodiscard]] bool is_bound() const { return storage_.index() != 0; }
  [[nodiscard]] CompressedCache* compressed() { return std::get_if<CompressedCache>(&storage_); }
  // Rows of the tensor's own type; null unless bound to plain memory.
  [[nodiscard]] std::byte* plain();

  // heads: the fitted basis of each KV head's keys, or empty. Unusable bases are ignored.
  // attend: the most tokens that a query reads; 0: all. file: for cold chunks; null: there are none.
  [[nodiscard]] Result<void> bind_compressed(int bits, int head_dim,
                                             std::span<const HeadBasis> heads = {},
                                             std::int64_t attend = 0,
                                             std::shared_ptr<ColdFile> file = nullptr);
  [[nodiscard]] Result<void> bind_plain();

  // The note says how the tensor was bound, for the log. take_note() returns it once and is empty
  // after that.
  void set_note(std::string note) { note_ = std::move(note); }
  [[nodiscard]] std::string take_note() { return std::exchange(note_, {}); }

  // Access bytes [offset, offset + size) of the rows. An unbound tensor reads as zeroes.
  [[nodiscard]] Result<void> get(std::span<std::byte> into, std::size_t offset);
  [[nodiscard]] Result<void> set(std::span<const std::byte> from, std::size_t offset);
  [[nodiscard]] Result<void> memset(std::uint8_t value, std::size_t offset, std::size_t size);
  void clear();

  // Read and write one row as f32.
  // REQUIRES: the tensor is bound to codes, and those of the row are held (HeldRows).
  void read_row(std::int64_t row, std::span<float> into) const;
  void write_row(std::int64_t row, std::span<const float> from);

 private:
  // One head of a row, as f16. Rows are transferred by heads, which fit on the stack: then a state
  // can be saved and restored even when memory has run out.
  using HeadRow = std::array<ggml_fp16_t, kHeadDimMax>;
  [[nodiscard]] std::size_t head_row_bytes() const;
  // offset: of any byte of the head, among those of all rows.
  void get_head(std::size_t offset, HeadRow& into) const;
  void set_head(std::size_t offset, const HeadRow& from);
  [[nodiscard]] Result<void> store(std::span<const std::byte> from, std::size_t offset);
  [[nodiscard]] Result<void> prepare_for(std::span<const std::byte> from, std::size_t offset);

  Side side_;
  int layer_;
  ggml_type type_;
  std::int64_t n_channels_;
  std::int64_t n_cells_;
  std::int64_t n_streams_;
  std::size_t row_bytes_;
  std::variant<std::monostate, CompressedCache, Mapping> storage_;
  std::string note_;
};

}  // namespace slipstream::turbo
