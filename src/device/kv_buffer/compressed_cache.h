// CompressedCache: the keys or the values of one layer as tiles of codes.
//
//   n_streams x n_heads x { tiles of codes, one after the other | f16 scales, tile after tile }
//
// so that attention over one head reads two sequential streams. Rows are addressed as libllama
// does: row = stream * n_cells + cell. Memory comes from the system as cells are first written.
//
// What is encoded of keys is the difference from a centre, one vector per head: the mean of the
// first rows written, where it stands out. Keys of many models share a large offset, which a codec
// that scales by length would spend its precision on. Attention adds the centre's part back exactly
// (piece_queries.cpp). Fitted keys have the mean of their fit. Values have no centre: the first token
// of most models has a value of almost nothing and half of the attention, and a centre would make
// it large.
//
// Recent chunks are kept in 8 bits as well (precise_chunks.h): write() writes both.
//
// Threads: concurrent reads are safe; a tile is written by one thread at a time (tile.h);
// observe(), keep_precise(), what changes centres, and clear() by one thread while nobody reads or
// writes.
// Errors:  create: kOutOfMemory.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mapping.h"
#include "base/result.h"
#include "device/codec/key_fit.h"
#include "device/codec/rotation.h"
#include "device/codec/tile.h"

namespace slipstream::turbo {

struct CacheShape {
  Side side;
  int bits;
  int head_dim;
  std::int64_t n_heads;
  std::int64_t n_cells;
  std::int64_t n_streams;
  // A copy in 8 bits of coarser codes, with one scale for a vector, as they have it.
  bool is_copy = false;
  // Of keys coded in the basis of their own head (key_fit.h).
  ChannelClasses fitted = {};

  [[nodiscard]] bool is_fitted() const { return fitted.n != 0; }
  [[nodiscard]] ChannelClasses classes() const {
    return is_fitted() ? fitted : one_class(bits, head_dim);
  }

  [[nodiscard]] int channels_per_scale() const {
    return is_copy ? head_dim : turbo::channels_per_scale(side, bits, head_dim);
  }
  [[nodiscard]] int n_scales() const { return is_copy ? 1 : turbo::n_scales(side, bits, head_dim); }
  [[nodiscard]] std::int64_t n_tiles() const { return turbo::n_tiles(n_cells); }
  [[nodiscard]] std::int64_t n_chunks() const { return turbo::n_chunks(n_cells); }
};

// Whether f16 rows, and so a mean of them, can have this number: false for NaN too.
inline bool is_row_number(float x) {
  constexpr float kF16Max = 65504;
  return std::abs(x) <= kF16Max;
}

class CompressedCache;
class PreciseChunks;

// A chunk in 8 bits: chunk `idx` of stream 0 of `tiles`.
struct PrecisePlace {
  CompressedCache* tiles;
  std::int64_t idx;
};

class CompressedCache {
 public:
  CompressedCache(CompressedCache&&) noexcept;
  CompressedCache& operator=(CompressedCache&&) noexcept;
  ~CompressedCache();

  // What a cache of this shape takes, with its precise chunks, without making one.
  [[nodiscard]] static std::size_t n_bytes(const CacheShape& shape);
  // fit: of the keys' heads, where the shape says that they are fitted.
  [[nodiscard]] static Result<CompressedCache> create(const CacheShape& shape,
                                                      std::shared_ptr<const KeyFit> fit = nullptr);

  [[nodiscard]] const CacheShape& shape() const { return shape_; }
  [[nodiscard]] const TileLayout& layout() const { return layout_; }
  [[nodiscard]] const Rotation& rotation() const { return rotation_; }
  // Null: codes are of rotated vectors.
  [[nodiscard]] const KeyFit* fit() const { return fit_.get(); }

  // Shows rows before they are written, while the centre is still open: it becomes their mean now
  // and then, and the rows seen before are written again. Afterwards does nothing. `rows` is
  // n x n_heads * head_dim. Rows written without being shown need a centre that does not move any
  // more: close it first.
  [[nodiscard]] bool is_centre_open() const { return is_centre_open_; }
  void observe(std::span<const std::int64_t> row_idx, std::span<const float> rows);
  void close_centre();
  [[nodiscard]] std::span<const float> centre(std::int64_t head) const;
  [[nodiscard]] std::span<const float> centres() const { return centre_; }  // n_heads x head_dim
  // Takes the centre of another cache for its own and closes it. Only while it is open: the rows
  // seen so far are written again.
  void adopt_centres(std::span<const float> centres);

  // Before these rows are written: their chunks are kept in 8 bits, too. `scratch` holds those that
  // are precise only until the next call with the same scratch, because newer ones follow them.
  void keep_precise(std::span<const std::int64_t> row_idx,
                    const std::shared_ptr<CompressedCache>& scratch);
  // Whether some of its chunks can be precise.
  [[nodiscard]] bool has_precise() const { return precise_ != nullptr; }
  // Null tiles: this one is not.
  [[nodiscard]] PrecisePlace precise(std::int64_t stream, std::int64_t chunk) const;

  // One vector of head_dim numbers, as the model sees it (not rotated).
  void write(std::int64_t row, std::int64_t head, std::span<const float> vector);
  // One for each row, at most a tile's.
  void write_rows(std::span<const std::int64_t> rows, std::int64_t head,
                  std::span<const float> vectors);
  void read(std::int64_t row, std::int64_t head, std::span<float> vector) const;
  // The copy in 8 bits, where there is one that lasts.
  void read_precise(std::int64_t row, std::int64_t head, std::span<float> vector) const;

  // A row of codes, so that it leaves a cache and comes back without change: for each head its
  // scales, then its codes (TileLayout::take). unpack() is false, with the row in no defined state,
  // for scales that no cache packs: those that are not finite.
  [[nodiscard]] std::size_t packed_row_bytes() const;
  void pack(std::int64_t row, std::span<std::byte> into) const;
  [[nodiscard]] bool unpack(std::int64_t row, std::span<const std::byte> from);
  // Rows just unpacked that were encoded around other centres: encodes them again, as rows that are
  // new here.
  void recentre(std::int64_t first_row, std::int64_t n_rows, std::span<const float> centres);

  // For kernels: layout().code_bytes() codes, and the scales as f16, [scale][token] (tile.h).
  [[nodiscard]] std::span<const std::uint8_t> codes(std::int64_t stream, std::int64_t head,
                                                    std::int64_t tile) const;
  [[nodiscard]] std::span<const std::uint16_t> scales(std::int64_t stream, std::int64_t head,
                                                      std::int64_t tile) const;

  void clear();
  void copy_stream(std::int64_t from, std::int64_t to);

 private:
  CompressedCache(const CacheShape& shape, Mapping memory, std::shared_ptr<const KeyFit> fit);
  void start_centre();
  void find_centre();
  void write_row(std::int64_t row, std::span<const float> channels);
  void encode_rotated(std::int64_t row, std::int64_t head, std::span<const float> rotated);
  void encode_fitted(std::int64_t row, std::int64_t head, std::span<const float> z);
  void write_precise(std::int64_t row, std::int64_t head, std::span<const float> rotated);
  void fill_precise(std::int64_t stream, std::int64_t chunk);
  void copy_codes(std::int64_t row, std::int64_t head);
  void read_centred(std::int64_t row, std::int64_t head, std::span<float> vector) const;
  void read_around(std::span<const float> centre, std::int64_t row, std::int64_t head,
                   std::span<float> vector) const;
  [[nodiscard]] std::int64_t n_chunks() const { return shape_.n_chunks(); }
  [[nodiscard]] std::uint8_t* head_start(std::int64_t stream, std::int64_t head) const;
  [[nodiscard]] std::span<std::uint8_t> tile_codes(std::int64_t row, std::int64_t head) const;
  [[nodiscard]] std::uint16_t* token_scales(std::int64_t row, std::int64_t head) const;

  CacheShape shape_;
  TileLayout layout_;
  Rotation rotation_;
  std::size_t codes_bytes_;  // of a head
  std::size_t head_bytes_;   // codes and scales
  Mapping memory_;
  std::shared_ptr<const KeyFit> fit_;
  std::vector<float> centre_;  // n_heads x head_dim, not rotated
  bool is_centre_open_;
  std::unique_ptr<PreciseChunks> precise_;  // null: codes of 8 bits are precise enough
  // The first rows, kept until enough of them have been seen to fix the centre.
  std::vector<std::int64_t> early_row_idx_;
  std::vector<float> early_rows_;
};

}  // namespace slipstream::turbo
