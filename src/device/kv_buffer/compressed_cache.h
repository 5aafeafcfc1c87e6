// CompressedCache: the keys or the values of one layer as tiles of codes.
//
//   n_streams x n_heads x { tiles of codes, one after the other | f16 scales, tile after tile }
//
// With this layout attention over one head reads two sequential streams. Rows are addressed as in
// libllama: row = stream * n_cells + cell. The system provides memory as cells are first written.
//
// Codes that were not used of late may lie in a file (cold_chunks.h). Then codes of rows are read
// and written only while they are held: by functions that return a Result, or by their callers.
//
// Threads: concurrent reads are safe; one thread at a time writes a tile (tile.h). observe(),
//          keep_precise(), clear() and functions that change centres are called by one thread while
//          no other thread reads or writes.
// Errors:  create: kOutOfMemory; kIo if there is a file. Others, only if there is a file: kIo.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mapping.h"
#include "base/result.h"
#include "device/codec/key_fit.h"
#include "device/codec/rotation.h"
#include "device/codec/tile.h"
#include "device/kv_buffer/cold_chunks.h"
#include "device/kv_buffer/key_signs.h"

namespace slipstream::turbo {

struct CacheShape {
  Side side;
  int bits;
  int head_dim;
  std::int64_t n_heads;
  std::int64_t n_cells;
  std::int64_t n_streams;
  // An 8-bit copy of coarser codes. Like those codes it has one scale per vector.
  bool is_copy = false;
  // The classes of keys that are coded in the basis of their own head (key_fit.h).
  ChannelClasses fitted = {};
  // The most tokens that a query reads; 0: all. Keys have signs if it is not 0.
  std::int64_t attend = 0;

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

// Whether f16 rows, and so a mean of them, can contain this number. False for NaN.
inline bool is_row_number(float x) {
  constexpr float kF16Max = 65504;
  return std::abs(x) <= kF16Max;
}

class CompressedCache;
class PreciseChunks;

// The place of an 8-bit copy of a chunk: chunk `idx` of stream 0 of `tiles`.
struct PrecisePlace {
  CompressedCache* tiles;
  std::int64_t idx;
};

// Keys are encoded as the difference from a centre, one vector per head: the mean of the first rows
// written, in channels where it stands out. Keys of many models share a large offset, which would
// cost a codec that scales by length its precision. Attention adds the centre's part back exactly
// (piece_queries.cpp). The centre of fitted keys is the mean of their fit. Values have no centre:
// in most models the first token has a value of almost nothing and half of the attention, and a
// centre would make that value large.
//
// Recent chunks are also kept in 8 bits (precise_chunks.h), and keys may have their signs kept
// beside them (key_signs.h): write() writes all.
class CompressedCache {
 public:
  CompressedCache(CompressedCache&&) noexcept;
  CompressedCache& operator=(CompressedCache&&) noexcept;
  ~CompressedCache();

  // The bytes that a cache of this shape takes, including its 8-bit chunks.
  [[nodiscard]] static std::size_t n_bytes(const CacheShape& shape);
  // fit: that of the layer's heads if shape.is_fitted(), otherwise null. file: for codes that are
  // not in memory; null: all are.
  [[nodiscard]] static Result<CompressedCache> create(const CacheShape& shape,
                                                      std::shared_ptr<const KeyFit> fit = nullptr,
                                                      std::shared_ptr<ColdFile> file = nullptr);

  [[nodiscard]] const CacheShape& shape() const { return shape_; }
  [[nodiscard]] const TileLayout& layout() const { return layout_; }
  [[nodiscard]] const Rotation& rotation() const { return rotation_; }
  // The basis that keys are coded in; null: codes are those of rotated vectors.
  [[nodiscard]] const KeyFit* fit() const { return fit_.get(); }

  // While the centre is open, observe() is called with rows before they are written. Now and then
  // it sets the centre to their mean and writes the rows seen before again. Once the centre is
  // closed it does nothing. `rows` is n x n_heads * head_dim. close_centre() must be called before
  // rows are written that were not observed, because the centre must not move after that.
  [[nodiscard]] bool is_centre_open() const { return is_centre_open_; }
  [[nodiscard]] Result<void> observe(std::span<const std::int64_t> row_idx,
                                     std::span<const float> rows);
  void close_centre();
  [[nodiscard]] std::span<const float> centre(std::int64_t head) const;
  [[nodiscard]] std::span<const float> centres() const { return centre_; }  // n_heads x head_dim
  // Takes over the centres of another cache and closes them. Writes the rows seen so far again.
  // REQUIRES: is_centre_open().
  [[nodiscard]] Result<void> adopt_centres(std::span<const float> centres);

  // Called before these rows are written: their chunks are kept in 8 bits, too. Chunks that newer
  // ones of the same call follow are kept in `scratch`, until the next call with the same scratch.
  [[nodiscard]] Result<void> keep_precise(std::span<const std::int64_t> row_idx,
                                          const std::shared_ptr<CompressedCache>& scratch);
  // Whether chunks of this cache can have 8-bit copies.
  [[nodiscard]] bool has_precise() const { return precise_ != nullptr; }
  // The place of the chunk's 8-bit copy; null tiles: it has none.
  [[nodiscard]] PrecisePlace precise(std::int64_t stream, std::int64_t chunk) const;

  // The signs of the keys; null: queries read all tokens.
  [[nodiscard]] const KeySigns* signs() const { return signs_ ? &*signs_ : nullptr; }

  // Whether codes may lie in a file. If not, nothing has to be held, and holding does not fail.
  [[nodiscard]] bool is_cold() const { return cold_ != nullptr; }
  // Starts to bring the codes of chunks, in order of their numbers, into memory to be read.
  [[nodiscard]] Result<ColdChunks::Held> start_reading(std::int64_t stream, std::int64_t head,
                                                       std::span<const int> chunks) const;
  // Brings the codes of the chunk of a row into memory, for all heads.
  [[nodiscard]] Result<ColdChunks::Held> hold_chunk_of(std::int64_t row, Access access) const;
  // After a failure rows are not those that the program has written: nothing is read or written any
  // more until clear(). Without a file it does nothing.
  void lose(const std::string& why);

  // Writes one vector of head_dim numbers, as the model sees it (not rotated).
  void write(std::int64_t row, std::int64_t head, std::span<const float> vector);
  // Writes one vector for each row.
  // REQUIRES: there are at most kTileTokens rows.
  void write_rows(std::span<const std::int64_t> rows, std::int64_t head,
                  std::span<const float> vectors);
  void read(std::int64_t row, std::int64_t head, std::span<float> vector) const;
  // Reads the 8-bit copy if there is one outside the scratch, otherwise the codes.
  void read_precise(std::int64_t row, std::int64_t head, std::span<float> vector) const;

  // Pack and unpack a row of codes without change: for each head its scales, then its codes
  // (TileLayout::take). If a scale is not finite, which no cache packs, unpack() returns false and
  // leaves the row in an undefined state.
  [[nodiscard]] std::size_t packed_row_bytes() const;
  void pack(std::int64_t row, std::span<std::byte> into) const;
  [[nodiscard]] bool unpack(std::int64_t row, std::span<const std::byte> from);
  // Encodes again rows that were just unpacked and that had been encoded around other centres. They
  // are treated as rows that are new here.
  [[nodiscard]] Result<void> recentre(std::int64_t first_row, std::int64_t n_rows,
                                      std::span<const float> centres);

  // For kernels: layout().code_bytes() bytes of codes, and the f16 scales, [scale][token] (tile.h).
  [[nodiscard]] std::span<const std::uint8_t> codes(std::int64_t stream, std::int64_t head,
                                                    std::int64_t tile) const;
  [[nodiscard]] std::span<const std::uint16_t> scales(std::int64_t stream, std::int64_t head,
                                                      std::int64_t tile) const;

  void clear();
  // After a failure the rows of `to` are lost.
  [[nodiscard]] Result<void> copy_stream(std::int64_t from, std::int64_t to);

 private:
  // Codes and scales of a head. In a cache with a file, codes are whole slabs, and the next head
  // begins with a block.
  struct HeadLayout {
    std::size_t codes_bytes;
    std::size_t head_bytes;
    std::int64_t chunks_of_slab = 0;  // 0: there is no file
  };
  [[nodiscard]] static HeadLayout head_layout(const CacheShape& shape, bool has_file);
  [[nodiscard]] static std::int64_t n_planes(const CacheShape& shape) {
    return shape.n_heads * shape.n_streams;
  }

  CompressedCache(const CacheShape& shape, const HeadLayout& head, Mapping memory,
                  std::shared_ptr<const KeyFit> fit);
  [[nodiscard]] Result<void> use_file(std::shared_ptr<ColdFile> file);
  [[nodiscard]] std::int64_t slabs_of_plane() const;
  [[nodiscard]] Slab slab_of(std::int64_t stream, std::int64_t head, std::int64_t chunk) const;
  [[nodiscard]] Result<ColdChunks::Held> hold_early_rows() const;
  void write_early_rows(std::size_t n);
  void start_centre();
  void find_centre();
  void write_row(std::int64_t row, std::span<const float> channels);
  void encode_rotated(std::int64_t row, std::int64_t head, std::span<const float> rotated);
  void encode_fitted(std::int64_t row, std::int64_t head, std::span<const float> z);
  void write_precise(std::int64_t row, std::int64_t head, std::span<const float> rotated);
  [[nodiscard]] Result<void> fill_precise(std::int64_t stream, std::int64_t chunk);
  void copy_codes(std::int64_t row, std::int64_t head);
  void restore_signs(std::int64_t row, std::int64_t head);
  void read_centred(std::int64_t row, std::int64_t head, std::span<float> vector) const;
  void decode_row(std::int64_t row, std::int64_t head, std::span<float> vector) const;
  void read_rotated(std::int64_t row, std::int64_t head, std::span<float> rotated) const;
  void read_around(std::span<const float> centre, std::int64_t row, std::int64_t head,
                   std::span<float> vector) const;
  [[nodiscard]] std::int64_t n_chunks() const { return shape_.n_chunks(); }
  [[nodiscard]] std::uint8_t* head_start(std::int64_t stream, std::int64_t head) const;
  [[nodiscard]] std::span<std::uint8_t> tile_codes(std::int64_t row, std::int64_t head) const;
  [[nodiscard]] std::uint16_t* token_scales(std::int64_t row, std::int64_t head) const;

  CacheShape shape_;
  TileLayout layout_;
  Rotation rotation_;
  HeadLayout head_;
  Mapping memory_;
  std::unique_ptr<ColdChunks> cold_;  // null: all codes are in memory
  std::shared_ptr<const KeyFit> fit_;
  std::vector<float> centre_;  // n_heads x head_dim, not rotated
  bool is_centre_open_;
  std::unique_ptr<PreciseChunks> precise_;  // null: codes of 8 bits are precise enough
  std::optional<KeySigns> signs_;
  // The first rows. They are kept until enough have been seen to fix the centre.
  std::vector<std::int64_t> early_row_idx_;
  std::vector<float> early_rows_;
};

// Holds what is around one row after the other, of all heads.
class HeldRows {
 public:
  HeldRows(const CompressedCache& cache, Access access) : cache_(cache), access_(access) {}
  // The row can be used until the next call.
  [[nodiscard]] Result<void> move_to(std::int64_t row);

 private:
  const CompressedCache& cache_;
  Access access_;
  std::int64_t tile_ = -1;
  ColdChunks::Held held_;
};

}  // namespace slipstream::turbo
