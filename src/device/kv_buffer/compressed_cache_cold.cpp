// Where the codes of a compressed cache lie, and how they are held if they may lie in a file.
#include <algorithm>
#include <numeric>

#include "device/kv_buffer/compressed_cache.h"

namespace slipstream::turbo {
namespace {

std::size_t codes_bytes_of_head(const CacheShape& shape) {
  return static_cast<std::size_t>(shape.n_tiles()) * tile_code_bytes(shape.classes());
}

std::size_t rounded_up(std::size_t n, std::size_t step) { return (n + step - 1) / step * step; }

std::size_t chunk_code_bytes(const CacheShape& shape) {
  return kChunkTiles * tile_code_bytes(shape.classes());
}

// Adds a slab to slabs in order of their numbers, once.
void add_slab(std::vector<Slab>& slabs, Slab slab) {
  if (slabs.empty() || slabs.back() != slab) slabs.push_back(slab);
}

}  // namespace

CompressedCache::HeadLayout CompressedCache::head_layout(const CacheShape& shape, bool has_file) {
  const std::size_t codes = codes_bytes_of_head(shape);
  const std::size_t all =
      tiles_bytes(tile_code_bytes(shape.classes()), shape.n_scales(), shape.n_cells);
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

}  // namespace slipstream::turbo
