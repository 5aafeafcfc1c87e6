#include "device/kv_buffer/compressed_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>

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
// The number of rows that fix the centre. A prompt has them at once; when tokens are decoded one by
// one, they are collected.
constexpr std::size_t kCentreRows = 32;

std::size_t codes_bytes_of_head(const CacheShape& shape) {
  return static_cast<std::size_t>(shape.n_tiles()) * tile_code_bytes(shape.classes());
}

std::size_t rounded_up(std::size_t n, std::size_t step) { return (n + step - 1) / step * step; }

std::size_t chunk_code_bytes(const CacheShape& shape) {
  return kChunkTiles * tile_code_bytes(shape.classes());
}

std::size_t n_scales_of_tile(const CacheShape& shape) {
  return static_cast<std::size_t>(shape.n_scales() * kTileTokens);
}

std::size_t bytes_of_head(const CacheShape& shape) {
  return tiles_bytes(tile_code_bytes(shape.classes()), shape.n_scales(), shape.n_cells);
}

std::size_t bytes_of_all_heads(const CacheShape& shape) {
  return bytes_of_head(shape) * static_cast<std::size_t>(shape.n_heads * shape.n_streams);
}

// Adds a slab to slabs in order of their numbers, once.
void add_slab(std::vector<Slab>& slabs, Slab slab) {
  if (slabs.empty() || slabs.back() != slab) slabs.push_back(slab);
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
  return bytes_of_all_heads(shape) + precise + signs;
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

CompressedCache::HeadLayout CompressedCache::head_layout(const CacheShape& shape, bool has_file) {
  const std::size_t codes = codes_bytes_of_head(shape);
  const std::size_t all = bytes_of_head(shape);
  if (!has_file) return {.codes_bytes = codes, .head_bytes = all};
  const std::size_t chunk = chunk_code_bytes(shape);
  const std::size_t slab = std::lcm(chunk, kBlockBytes);
  const std::size_t whole = rounded_up(codes, slab);
  return {.codes_bytes = whole,
          .head_bytes = rounded_up(whole + (all - codes), kBlockBytes),
          .chunks_of_slab = static_cast<std::int64_t>(slab / chunk)};
}

Result<void> CompressedCache::use_file(std::shared_ptr<ColdFile> file) {
  const std::size_t slab_bytes =
      static_cast<std::size_t>(head_.chunks_of_slab) * chunk_code_bytes(shape_);
  Result<std::unique_ptr<ColdChunks>> cold = ColdChunks::create({.first = memory_.bytes().data(),
                                                                 .plane_stride = head_.head_bytes,
                                                                 .slab_bytes = slab_bytes,
                                                                 .slabs_of_plane = slabs_of_plane(),
                                                                 .n_planes = n_planes(shape_)},
                                                                std::move(file));
  if (!cold) return std::unexpected(std::move(cold.error()));
  cold_ = std::move(*cold);
  return {};
}

std::int64_t CompressedCache::slabs_of_plane() const {
  return (n_chunks() + head_.chunks_of_slab - 1) / head_.chunks_of_slab;
}

Slab CompressedCache::slab_of(std::int64_t stream, std::int64_t head, std::int64_t chunk) const {
  return static_cast<Slab>((stream * shape_.n_heads + head) * slabs_of_plane() +
                           chunk / head_.chunks_of_slab);
}

Result<ColdChunks::Held> CompressedCache::start_reading(std::int64_t stream, std::int64_t head,
                                                        std::span<const int> chunks) const {
  if (cold_ == nullptr) return ColdChunks::Held();
  std::vector<Slab> slabs;
  slabs.reserve(chunks.size());
  for (const int chunk : chunks) add_slab(slabs, slab_of(stream, head, chunk));
  return cold_->start(std::move(slabs), Access::kRead);
}

Result<ColdChunks::Held> CompressedCache::hold_chunk_of(std::int64_t row, Access access) const {
  if (cold_ == nullptr) return ColdChunks::Held();
  std::vector<Slab> slabs;
  slabs.reserve(static_cast<std::size_t>(shape_.n_heads));
  for (std::int64_t head = 0; head < shape_.n_heads; ++head) {
    slabs.push_back(slab_of(row / shape_.n_cells, head, row % shape_.n_cells / kChunkTokens));
  }
  return cold_->hold(std::move(slabs), access);
}

Result<ColdChunks::Held> CompressedCache::hold_early_rows() const {
  if (cold_ == nullptr) return ColdChunks::Held();
  std::vector<Slab> slabs;
  slabs.reserve(early_row_idx_.size() * static_cast<std::size_t>(shape_.n_heads));
  for (const std::int64_t row : early_row_idx_) {
    for (std::int64_t head = 0; head < shape_.n_heads; ++head) {
      slabs.push_back(slab_of(row / shape_.n_cells, head, row % shape_.n_cells / kChunkTokens));
    }
  }
  std::ranges::sort(slabs);
  slabs.erase(std::ranges::unique(slabs).begin(), slabs.end());
  return cold_->hold(std::move(slabs), Access::kWrite);
}

void CompressedCache::lose(const std::string& why) {
  if (cold_ != nullptr) cold_->lose(why);
}

Result<void> HeldRows::move_to(std::int64_t row) {
  // Rows of a tile are of one chunk, whatever the number of cells.
  const CacheShape& shape = cache_.shape();
  const std::int64_t tile =
      row / shape.n_cells * shape.n_tiles() + row % shape.n_cells / kTileTokens;
  if (tile == tile_ || !cache_.is_cold()) return {};
  tile_ = -1;
  held_ = {};
  Result<ColdChunks::Held> held = cache_.hold_chunk_of(row, access_);
  if (!held) return std::unexpected(std::move(held.error()));
  held_ = std::move(*held);
  tile_ = tile;
  return {};
}

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

void CompressedCache::start_centre() {
  is_centre_open_ = shape_.side == Side::kKey && fit_ == nullptr;
  std::ranges::fill(centre_, 0.0F);
  if (fit_ == nullptr) return;
  for (std::int64_t head = 0; head < shape_.n_heads; ++head) {
    std::ranges::copy(fit_->mean(head), centre_.begin() + head * shape_.head_dim);
  }
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

// The centre is the mean only in channels where the mean stands out from the variation of the keys.
// The other channels turn with the position, so their mean over the first rows is not that of later
// rows. Mean KL divergence, measured on the needle model with turbo4:
//   no centre                          0.00889
//   mean of all key channels           0.00955
//   mean of those beyond 2 deviations  0.00897
//   mean of those beyond 4 deviations  0.00867
//
// Numbers that no row can have, such as NaN, are left out, because later rows of all sequences are
// coded around the centre.
void CompressedCache::find_centre() {
  constexpr float kDeviations = 4;
  const std::size_t n_channels = centre_.size();
  for (std::size_t channel = 0; channel < n_channels; ++channel) {
    float n = 0;
    float sum = 0;
    float sum_of_squares = 0;
    for (std::size_t i = channel; i < early_rows_.size(); i += n_channels) {
      if (!is_row_number(early_rows_[i])) continue;
      n += 1;
      sum += early_rows_[i];
      sum_of_squares += early_rows_[i] * early_rows_[i];
    }
    const float mean = n > 0 ? sum / n : 0;
    const float variance = n > 0 ? std::max(0.0F, sum_of_squares / n - mean * mean) : 0;
    const bool stands_out = mean * mean > kDeviations * kDeviations * variance;
    centre_[channel] = stands_out ? mean : 0;
  }
}

Result<void> CompressedCache::observe(std::span<const std::int64_t> row_idx,
                                      std::span<const float> rows) {
  if (!is_centre_open_ || row_idx.empty()) return {};
  const Result<ColdChunks::Held> held = hold_early_rows();  // before anything changes
  if (!held) return std::unexpected(held.error());
  const std::size_t n_before = early_row_idx_.size();
  // Reserves first, so that either both grow or, if memory runs out, none.
  early_row_idx_.reserve(n_before + row_idx.size());
  early_rows_.reserve(early_rows_.size() + rows.size());
  early_row_idx_.append_range(row_idx);
  early_rows_.append_range(rows);
  const std::size_t n_now = early_row_idx_.size();
  // When rows come one by one, the centre moves at 1, 2, 4, 8, 16 and 32 rows. Writing all rows
  // again for each new one made the first 32 tokens of an empty cache take a tenth longer.
  if (std::bit_width(n_before) == std::bit_width(n_now) && n_now < kCentreRows) return {};
  find_centre();
  write_early_rows(n_before);  // the caller will write the new rows
  if (n_now >= kCentreRows) close_centre();
  return {};
}

Result<void> CompressedCache::adopt_centres(std::span<const float> centres) {
  SLIP_CHECK(is_centre_open_, "a centre that is closed does not move");
  const Result<ColdChunks::Held> held = hold_early_rows();
  if (!held) return std::unexpected(held.error());
  std::ranges::copy(centres, centre_.begin());
  write_early_rows(early_row_idx_.size());
  close_centre();
  return {};
}

void CompressedCache::write_early_rows(std::size_t n) {
  const std::size_t n_channels = centre_.size();
  for (std::size_t i = 0; i < n; ++i) {
    write_row(early_row_idx_[i], std::span(early_rows_).subspan(i * n_channels, n_channels));
  }
}

void CompressedCache::close_centre() {
  is_centre_open_ = false;
  early_row_idx_ = std::vector<std::int64_t>();  // `= {}` would keep the memory
  early_rows_ = std::vector<float>();
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

Result<void> CompressedCache::recentre(std::int64_t first_row, std::int64_t n_rows,
                                       std::span<const float> centres) {
  constexpr std::int64_t kRowsAtOnce = 512;  // more than kCentreRows
  const auto head_dim = static_cast<std::size_t>(shape_.head_dim);
  const std::size_t n_channels = centre_.size();
  std::vector<std::int64_t> row_idx;
  std::vector<float> rows;
  for (const std::int64_t end_row = first_row + n_rows; first_row < end_row;
       first_row += kRowsAtOnce) {
    row_idx.resize(static_cast<std::size_t>(std::min(kRowsAtOnce, end_row - first_row)));
    std::ranges::iota(row_idx, first_row);
    rows.resize(row_idx.size() * n_channels);
    std::span<float> rest = rows;
    HeldRows read(*this, Access::kRead);
    for (const std::int64_t row : row_idx) {
      if (Result<void> held = read.move_to(row); !held) return held;
      for (std::int64_t head = 0; head < shape_.n_heads; ++head, rest = rest.subspan(head_dim)) {
        read_around(centres.subspan(static_cast<std::size_t>(head) * head_dim, head_dim), row, head,
                    rest.first(head_dim));
      }
    }
    if (Result<void> observed = observe(row_idx, rows); !observed) return observed;
    HeldRows written(*this, Access::kWrite);
    for (std::size_t i = 0; i < row_idx.size(); ++i) {
      if (Result<void> held = written.move_to(row_idx[i]); !held) return held;
      write_row(row_idx[i], std::span(rows).subspan(i * n_channels, n_channels));
    }
  }
  return {};
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
