#include "device/kv_buffer/compressed_cache.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <new>

#include "base/check.h"
#include "device/codec/codebook.h"
#include "device/codec/codec_kernels.h"
#include "device/codec/f16.h"
#include "device/codec/vector_codec.h"
#include "device/kv_buffer/precise_chunks.h"

namespace slipstream::turbo {
namespace {

// The bytes that kernels may read behind the last tile.
constexpr std::size_t kReadableBehind = 1024;

std::size_t n_scales_of_tile(const CacheShape& shape) {
  return static_cast<std::size_t>(shape.n_scales() * kTileTokens);
}

bool has_signs(const CacheShape& shape) { return shape.attend != 0 && shape.side == Side::kKey; }

SignShape sign_shape(const CacheShape& shape) {
  return {.head_dim = shape.head_dim,
          .n_heads = shape.n_heads,
          .n_cells = shape.n_cells,
          .n_streams = shape.n_streams};
}

// The part of a vector that the i-th scale applies to.
template <typename T>
std::span<T> scale_part(std::span<T> vector, const CacheShape& shape, int i) {
  const auto n = static_cast<std::size_t>(shape.channels_per_scale());
  const std::size_t first = static_cast<std::size_t>(i) * n;
  return vector.subspan(first, std::min(n, vector.size() - first));
}

}  // namespace

std::size_t CompressedCache::n_bytes(const CacheShape& shape) {
  const std::size_t precise =
      PreciseChunks::suits(shape) ? n_bytes(PreciseChunks::slots_shape(shape)) : 0;
  const std::size_t signs = has_signs(shape) ? KeySigns::n_bytes(sign_shape(shape)) : 0;
  const std::size_t heads =
      head_layout(shape, false).head_bytes * static_cast<std::size_t>(n_planes(shape));
  return heads + precise + signs;
}

Result<CompressedCache> CompressedCache::create(const CacheShape& shape,
                                                std::shared_ptr<const KeyFit> fit,
                                                std::shared_ptr<ColdFile> file) {
  SLIP_CHECK(shape.is_fitted() == (fit != nullptr), "a fit where there is to be one");
  const HeadLayout head = head_layout(shape, file != nullptr);
  Result<Mapping> memory = Mapping::anonymous(
      head.head_bytes * static_cast<std::size_t>(n_planes(shape)) + kReadableBehind);
  if (!memory) return std::unexpected(std::move(memory.error()));
  CompressedCache cache(shape, head, std::move(*memory), std::move(fit));
  if (file != nullptr) {
    if (Result<void> used = cache.use_file(std::move(file)); !used) {
      return std::unexpected(std::move(used.error()));
    }
  }
  if (PreciseChunks::suits(shape)) {
    Result<CompressedCache> slots = create(PreciseChunks::slots_shape(shape));
    if (!slots) return slots;
    cache.precise_ = std::make_unique<PreciseChunks>(shape, std::move(*slots));
  }
  if (has_signs(shape)) {
    Result<KeySigns> signs = KeySigns::create(sign_shape(shape));
    if (!signs) return std::unexpected(std::move(signs.error()));
    cache.signs_ = std::move(*signs);
  }
  return cache;
}

CompressedCache::CompressedCache(CompressedCache&&) noexcept = default;
CompressedCache& CompressedCache::operator=(CompressedCache&&) noexcept = default;
CompressedCache::~CompressedCache() = default;

CompressedCache::CompressedCache(const CacheShape& shape, const HeadLayout& head, Mapping memory,
                                 std::shared_ptr<const KeyFit> fit)
    : shape_(shape),
      layout_(shape.side, shape.classes()),
      rotation_(shape.head_dim),
      head_(head),
      memory_(std::move(memory)),
      fit_(std::move(fit)),
      centre_(static_cast<std::size_t>(shape.n_heads * shape.head_dim)) {
  start_centre();
}

std::uint8_t* CompressedCache::head_start(std::int64_t stream, std::int64_t head) const {
  // The mapped memory is not part of this object's value: const readers share it.
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(memory_.bytes().data());
  return const_cast<std::uint8_t*>(bytes) +
         head_.head_bytes * static_cast<std::size_t>(stream * shape_.n_heads + head);
}

std::span<const std::uint8_t> CompressedCache::codes(std::int64_t stream, std::int64_t head,
                                                     std::int64_t tile) const {
  return {head_start(stream, head) + static_cast<std::size_t>(tile) * layout_.code_bytes(),
          layout_.code_bytes()};
}

std::span<const std::uint16_t> CompressedCache::scales(std::int64_t stream, std::int64_t head,
                                                       std::int64_t tile) const {
  const std::uint8_t* start = head_start(stream, head) + head_.codes_bytes;
  const std::size_t n = n_scales_of_tile(shape_);
  return {reinterpret_cast<const std::uint16_t*>(start) + static_cast<std::size_t>(tile) * n, n};
}

std::span<std::uint8_t> CompressedCache::tile_codes(std::int64_t row, std::int64_t head) const {
  const std::int64_t tile = row % shape_.n_cells / kTileTokens;
  const std::span found = codes(row / shape_.n_cells, head, tile);
  return {const_cast<std::uint8_t*>(found.data()), found.size()};
}

// The first of a token's scales. Each following one is kTileTokens elements further.
std::uint16_t* CompressedCache::token_scales(std::int64_t row, std::int64_t head) const {
  const std::int64_t tile = row % shape_.n_cells / kTileTokens;
  const std::span found = scales(row / shape_.n_cells, head, tile);
  return const_cast<std::uint16_t*>(found.data()) + row % shape_.n_cells % kTileTokens;
}

std::span<const float> CompressedCache::centre(std::int64_t head) const {
  const auto head_dim = static_cast<std::size_t>(shape_.head_dim);
  return std::span(centre_).subspan(static_cast<std::size_t>(head) * head_dim, head_dim);
}

void CompressedCache::write(std::int64_t row, std::int64_t head, std::span<const float> vector) {
  write_rows({&row, 1}, head, vector);
}

void CompressedCache::write_rows(std::span<const std::int64_t> rows, std::int64_t head,
                                 std::span<const float> vectors) {
  const auto head_dim = static_cast<std::size_t>(shape_.head_dim);
  std::array<float, kTileTokens * kHeadDimMax> memory;
  const std::span centred(memory.data(), vectors.size());
  for (std::size_t i = 0; i < vectors.size(); i += head_dim) {
    std::ranges::transform(vectors.subspan(i, head_dim), centre(head), centred.subspan(i).begin(),
                           std::minus<>());
  }
  if (fit_ != nullptr) {
    std::array<float, kTileTokens * kHeadDimMax> z_memory;
    const std::span z(z_memory.data(), vectors.size());
    fit_->to_codes(head, centred, z);  // all at once, because the matrix is large
    for (std::size_t i = 0; i < rows.size(); ++i) {
      encode_fitted(rows[i], head, z.subspan(i * head_dim, head_dim));
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::span x = centred.subspan(i * head_dim, head_dim);
    rotate_fast(rotation_, x);
    if (fit_ == nullptr) encode_rotated(rows[i], head, x);
    write_precise(rows[i], head, x);
    if (signs_) signs_->write(rows[i], head, x);
  }
}

void CompressedCache::encode_fitted(std::int64_t row, std::int64_t head, std::span<const float> z) {
  std::array<std::uint8_t, kHeadDimMax> memory;
  const std::span codes(memory.data(), z.size());
  const auto token = static_cast<int>(row % shape_.n_cells % kTileTokens);
  *token_scales(row, head) = encode_fitted_fast(layout_.classes(), fit_->weights(head), z, codes);
  put_fast(layout_, tile_codes(row, head), token, codes);
}

void CompressedCache::encode_rotated(std::int64_t row, std::int64_t head,
                                     std::span<const float> rotated) {
  std::array<std::uint8_t, kHeadDimMax> codes;
  const std::span c(codes.data(), rotated.size());
  const auto token = static_cast<int>(row % shape_.n_cells % kTileTokens);
  std::uint16_t* scale = token_scales(row, head);
  for (int i = 0; i < shape_.n_scales(); ++i) {
    scale[i * kTileTokens] =
        encode_fast(shape_.bits, scale_part(rotated, shape_, i), scale_part(c, shape_, i));
  }
  put_fast(layout_, tile_codes(row, head), token, c);
}

PrecisePlace CompressedCache::precise(std::int64_t stream, std::int64_t chunk) const {
  if (precise_ == nullptr) return {nullptr, 0};
  return precise_->place(stream * n_chunks() + chunk);
}

// Writes the row's 8-bit copy, if its chunk has one. A cell has the same place in the copy of a
// chunk, so a tile of the copy is written by the same thread as the tile of codes.
void CompressedCache::write_precise(std::int64_t row, std::int64_t head,
                                    std::span<const float> rotated) {
  const std::int64_t cell = row % shape_.n_cells;
  const auto [tiles, idx] = precise(row / shape_.n_cells, cell / kChunkTokens);
  if (tiles == nullptr) return;
  tiles->encode_rotated(idx * kChunkTokens + cell % kChunkTokens, head, rotated);
}

Result<void> CompressedCache::keep_precise(std::span<const std::int64_t> row_idx,
                                           const std::shared_ptr<CompressedCache>& scratch) {
  if (precise_ == nullptr) return {};
  const std::vector<std::int64_t> taken = precise_->keep(row_idx, scratch);
  Result<void> filled;
  for (const std::int64_t chunk : taken) {
    if (filled) filled = fill_precise(chunk / n_chunks(), chunk % n_chunks());
    if (!filled) precise_->forget(chunk);
  }
  return filled;
}

// Fills a new 8-bit copy of a chunk from the codes of the rows that the chunk may already hold.
Result<void> CompressedCache::fill_precise(std::int64_t stream, std::int64_t chunk) {
  const std::int64_t first = chunk * kChunkTokens;
  Result<ColdChunks::Held> held;
  try {
    held = hold_chunk_of(stream * shape_.n_cells + first, Access::kRead);
  } catch (const std::bad_alloc&) {
    held = fail(Code::kOutOfMemory, "no memory");  // short, so that it takes none
  }
  if (!held) return std::unexpected(std::move(held.error()));
  const std::int64_t end = std::min(first + kChunkTokens, shape_.n_cells);
  for (std::int64_t cell = first; cell < end; ++cell) {
    for (std::int64_t head = 0; head < shape_.n_heads; ++head) {
      copy_codes(stream * shape_.n_cells + cell, head);
    }
  }
  return {};
}

// The levels of rotated codes are 8-bit integers already, so the copy gets these and their scale.
void CompressedCache::copy_codes(std::int64_t row, std::int64_t head) {
  const std::int64_t cell = row % shape_.n_cells;
  const auto [tiles, idx] = precise(row / shape_.n_cells, cell / kChunkTokens);
  if (tiles == nullptr) return;
  const std::int64_t copy = idx * kChunkTokens + cell % kChunkTokens;
  if (fit_ != nullptr) {
    std::array<float, kHeadDimMax> vector;
    const std::span x(vector.data(), static_cast<std::size_t>(shape_.head_dim));
    read_rotated(row, head, x);
    tiles->encode_rotated(copy, head, x);
    return;
  }
  std::array<std::uint8_t, kHeadDimMax> memory;
  const std::span codes(memory.data(), static_cast<std::size_t>(shape_.head_dim));
  const auto token = static_cast<int>(cell % kTileTokens);
  get_fast(layout_, tile_codes(row, head), token, codes);
  const std::span<const std::int8_t> levels = centroids_i8(shape_.bits);
  std::ranges::transform(codes, codes.begin(), [&](std::uint8_t code) {
    return static_cast<std::uint8_t>(levels[code] + 128);
  });
  put_fast(tiles->layout_, tiles->tile_codes(copy, head), token, codes);
  *tiles->token_scales(copy, head) = *token_scales(row, head);
}

// Computes the signs of a key that was written as codes. Codes keep the signs of what they stand
// for.
void CompressedCache::restore_signs(std::int64_t row, std::int64_t head) {
  if (!signs_) return;
  std::array<float, kHeadDimMax> vector;
  const std::span x(vector.data(), static_cast<std::size_t>(shape_.head_dim));
  read_rotated(row, head, x);
  signs_->write(row, head, x);
}

void CompressedCache::write_row(std::int64_t row, std::span<const float> channels) {
  const auto head_dim = static_cast<std::size_t>(shape_.head_dim);
  for (std::int64_t head = 0; head < shape_.n_heads; ++head) {
    write(row, head, channels.subspan(static_cast<std::size_t>(head) * head_dim, head_dim));
  }
}

void CompressedCache::read(std::int64_t row, std::int64_t head, std::span<float> vector) const {
  read_around(centre(head), row, head, vector);
}

void CompressedCache::read_around(std::span<const float> centre, std::int64_t row,
                                  std::int64_t head, std::span<float> vector) const {
  read_centred(row, head, vector);
  std::ranges::transform(vector, centre, vector.begin(), std::plus<>());
}

void CompressedCache::read_precise(std::int64_t row, std::int64_t head,
                                   std::span<float> vector) const {
  if (precise_ == nullptr) return read(row, head, vector);
  const std::int64_t cell = row % shape_.n_cells;
  const auto [tiles, idx] =
      precise_->lasting_place(row / shape_.n_cells * n_chunks() + cell / kChunkTokens);
  if (tiles == nullptr) return read(row, head, vector);
  tiles->read_centred(idx * kChunkTokens + cell % kChunkTokens, head, vector);
  std::ranges::transform(vector, centre(head), vector.begin(), std::plus<>());
}

void CompressedCache::read_centred(std::int64_t row, std::int64_t head,
                                   std::span<float> vector) const {
  decode_row(row, head, vector);
  if (fit_ == nullptr) rotate_back_fast(rotation_, vector);
}

void CompressedCache::read_rotated(std::int64_t row, std::int64_t head,
                                   std::span<float> rotated) const {
  decode_row(row, head, rotated);
  if (fit_ != nullptr) rotate_fast(rotation_, rotated);
}

// Decodes a vector: rotated, or as the model sees it if keys are fitted.
void CompressedCache::decode_row(std::int64_t row, std::int64_t head,
                                 std::span<float> vector) const {
  std::array<std::uint8_t, kHeadDimMax> codes;
  const std::span c(codes.data(), vector.size());
  const auto token = static_cast<int>(row % shape_.n_cells % kTileTokens);
  get_fast(layout_, tile_codes(row, head), token, c);
  const std::uint16_t* scale = token_scales(row, head);
  if (fit_ != nullptr) {
    std::array<float, kHeadDimMax> memory;
    const std::span z(memory.data(), vector.size());
    decode_fitted(layout_.classes(), *scale, c, z);
    fit_->from_codes(head, z, vector);
    return;
  }
  for (int i = 0; i < shape_.n_scales(); ++i) {
    decode(shape_.bits, scale[i * kTileTokens],
           scale_part(std::span<const std::uint8_t>(c), shape_, i), scale_part(vector, shape_, i));
  }
}

std::size_t CompressedCache::packed_row_bytes() const {
  const auto scales_of_token = static_cast<std::size_t>(shape_.n_scales());
  return static_cast<std::size_t>(shape_.n_heads) *
         (scales_of_token * sizeof(std::uint16_t) + layout_.token_bytes());
}

void CompressedCache::pack(std::int64_t row, std::span<std::byte> into) const {
  const auto token = static_cast<int>(row % shape_.n_cells % kTileTokens);
  const int n = shape_.n_scales();
  auto* at = reinterpret_cast<std::uint8_t*>(into.data());
  for (std::int64_t head = 0; head < shape_.n_heads; ++head) {
    const std::uint16_t* scale = token_scales(row, head);
    for (int i = 0; i < n; ++i, at += sizeof(*scale)) {
      std::memcpy(at, scale + i * kTileTokens, sizeof(*scale));
    }
    take_fast(layout_, tile_codes(row, head), token, {at, layout_.token_bytes()});
    at += layout_.token_bytes();
  }
}

bool CompressedCache::unpack(std::int64_t row, std::span<const std::byte> from) {
  const auto token = static_cast<int>(row % shape_.n_cells % kTileTokens);
  const int n = shape_.n_scales();
  const auto* at = reinterpret_cast<const std::uint8_t*>(from.data());
  for (std::int64_t head = 0; head < shape_.n_heads; ++head) {
    std::uint16_t* scale = token_scales(row, head);
    for (int i = 0; i < n; ++i, at += sizeof(*scale)) {
      std::uint16_t value = 0;
      std::memcpy(&value, at, sizeof(value));
      if ((value & kF16Infinity) == kF16Infinity) return false;
      scale[i * kTileTokens] = value;
    }
    place_fast(layout_, tile_codes(row, head), token, {at, layout_.token_bytes()});
    at += layout_.token_bytes();
    if (precise_ != nullptr) copy_codes(row, head);
    restore_signs(row, head);
  }
  return true;
}

void CompressedCache::clear() {
  if (cold_ != nullptr) cold_->forget_all();
  memory_.zero();
  start_centre();
  early_row_idx_.clear();
  early_rows_.clear();
  if (precise_ != nullptr) precise_->forget_all();
  if (signs_) signs_->clear();
}

Result<void> CompressedCache::copy_stream(std::int64_t from, std::int64_t to) {
  if (from == to) return {};
  close_centre();  // the copied rows are not among the early rows
  const std::size_t scales_bytes = head_.head_bytes - head_.codes_bytes;
  for (std::int64_t head = 0; head < shape_.n_heads; ++head) {
    if (cold_ == nullptr) {
      std::memcpy(head_start(to, head), head_start(from, head), head_.codes_bytes);
    } else if (Result<void> copied = cold_->copy(slab_of(from, head, 0), slab_of(to, head, 0),
                                                 static_cast<Slab>(slabs_of_plane()));
               !copied) {
      lose(copied.error().message);
      return copied;
    }
    std::memcpy(head_start(to, head) + head_.codes_bytes,
                head_start(from, head) + head_.codes_bytes, scales_bytes);
  }
  if (precise_ != nullptr) precise_->forget_stream(to);
  if (signs_) signs_->copy_stream(from, to);
  return {};
}

}  // namespace slipstream::turbo
