#include "device/kv_buffer/cache_tensor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <new>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace slipstream::turbo {
namespace {

struct Name {
  Side side;
  int layer;
};

std::optional<Name> parse_name(std::string_view name) {
  const bool keys = name.starts_with("cache_k_l");
  if (!keys && !name.starts_with("cache_v_l")) return std::nullopt;
  name.remove_prefix(std::string_view("cache_k_l").size());
  int layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return Name{.side = keys ? Side::kKey : Side::kValue, .layer = layer};
}

}  // namespace

bool CacheTensor::is_cache(const ggml_tensor* tensor) {
  return tensor->view_src == nullptr && tensor->ne[3] == 1 && parse_name(tensor->name).has_value();
}

CacheTensor::CacheTensor(const ggml_tensor* tensor)
    : type_(tensor->type),
      n_channels_(tensor->ne[0]),
      n_cells_(tensor->ne[1]),
      n_streams_(tensor->ne[2]),
      row_bytes_(ggml_row_size(tensor->type, tensor->ne[0])) {
  const std::optional<Name> name = parse_name(tensor->name);
  SLIP_CHECK(name.has_value(), "not a cache tensor");
  side_ = name->side;
  layer_ = name->layer;
}

std::byte* CacheTensor::plain() {
  Mapping* memory = std::get_if<Mapping>(&storage_);
  return memory == nullptr ? nullptr : memory->bytes().data();
}

Result<void> CacheTensor::bind_compressed(int bits, int head_dim, std::span<const HeadBasis> heads,
                                          std::int64_t attend, std::shared_ptr<ColdFile> file) {
  SLIP_CHECK(!is_bound(), "bound twice");
  SLIP_CHECK(type_ == GGML_TYPE_F16, "only f16 caches are compressed");
  std::shared_ptr<const KeyFit> fit;
  if (!heads.empty() && side_ == Side::kKey && is_fittable(bits, head_dim)) {
    fit = std::make_shared<const KeyFit>(bits, head_dim, heads);
    if (!fit->is_usable()) fit = nullptr;
  }
  Result<CompressedCache> cache =
      CompressedCache::create({.side = side_,
                               .bits = bits,
                               .head_dim = head_dim,
                               .n_heads = n_channels_ / head_dim,
                               .n_cells = n_cells_,
                               .n_streams = n_streams_,
                               .fitted = fit == nullptr ? ChannelClasses{} : fit->classes(),
                               .attend = attend},
                              fit, std::move(file));
  if (!cache) return std::unexpected(std::move(cache.error()));
  storage_ = std::move(*cache);
  return {};
}

Result<void> CacheTensor::bind_plain() {
  SLIP_CHECK(!is_bound(), "bound twice");
  Result<Mapping> memory = Mapping::anonymous(row_bytes_ * static_cast<std::size_t>(n_rows()));
  if (!memory) return std::unexpected(std::move(memory.error()));
  storage_ = std::move(*memory);
  return {};
}

void CacheTensor::read_row(std::int64_t row, std::span<float> into) const {
  const auto& cache = std::get<CompressedCache>(storage_);
  const auto head_dim = static_cast<std::size_t>(cache.shape().head_dim);
  for (std::int64_t head = 0; head < cache.shape().n_heads; ++head) {
    cache.read_precise(row, head,
                       into.subspan(static_cast<std::size_t>(head) * head_dim, head_dim));
  }
}

void CacheTensor::write_row(std::int64_t row, std::span<const float> from) {
  auto& cache = std::get<CompressedCache>(storage_);
  const auto head_dim = static_cast<std::size_t>(cache.shape().head_dim);
  for (std::int64_t head = 0; head < cache.shape().n_heads; ++head) {
    cache.write(row, head, from.subspan(static_cast<std::size_t>(head) * head_dim, head_dim));
  }
}

std::size_t CacheTensor::head_row_bytes() const {
  const auto& cache = std::get<CompressedCache>(storage_);
  return static_cast<std::size_t>(cache.shape().head_dim) * sizeof(ggml_fp16_t);
}

void CacheTensor::get_head(std::size_t offset, HeadRow& into) const {
  const auto& cache = std::get<CompressedCache>(storage_);
  const auto head_dim = static_cast<std::size_t>(cache.shape().head_dim);
  const std::size_t head = offset % row_bytes_ / head_row_bytes();
  std::array<float, kHeadDimMax> memory;
  const std::span vector(memory.data(), head_dim);
  cache.read_precise(static_cast<std::int64_t>(offset / row_bytes_),
                     static_cast<std::int64_t>(head), vector);
  ggml_fp32_to_fp16_row(vector.data(), into.data(), cache.shape().head_dim);
}

void CacheTensor::set_head(std::size_t offset, const HeadRow& from) {
  auto& cache = std::get<CompressedCache>(storage_);
  const auto head_dim = static_cast<std::size_t>(cache.shape().head_dim);
  const std::size_t head = offset % row_bytes_ / head_row_bytes();
  std::array<float, kHeadDimMax> memory;
  const std::span vector(memory.data(), head_dim);
  ggml_fp16_to_fp32_row(from.data(), vector.data(), cache.shape().head_dim);
  cache.write(static_cast<std::int64_t>(offset / row_bytes_), static_cast<std::int64_t>(head),
              vector);
}

Result<void> CacheTensor::store(std::span<const std::byte> from, std::size_t offset) {
  const std::size_t head_bytes = head_row_bytes();
  HeldRows rows(std::get<CompressedCache>(storage_), Access::kWrite);
  HeadRow head;
  while (!from.empty()) {
    if (Result<void> held = rows.move_to(static_cast<std::int64_t>(offset / row_bytes_)); !held) {
      return held;
    }
    const std::size_t start = offset % head_bytes;
    const std::size_t n_bytes = std::min(head_bytes - start, from.size());
    if (n_bytes < head_bytes) get_head(offset, head);  // keeps the rest of the head
    std::memcpy(reinterpret_cast<std::byte*>(head.data()) + start, from.data(), n_bytes);
    set_head(offset, head);
    from = from.subspan(n_bytes);
    offset += n_bytes;
  }
  return {};
}

// A state that is restored into a new cache sets its centre, as a prompt would. Otherwise the next
// computed rows would move the centre after the restored rows were encoded around the old one. The
// centre is taken from as many rows as libllama computes at once, so it is nearly that of the saved
// cache, and nearly all codes are the same again. The last rows get 8-bit copies again, as before.
Result<void> CacheTensor::prepare_for(std::span<const std::byte> from, std::size_t offset) {
  constexpr std::size_t kRowsMax = 512;
  auto& cache = std::get<CompressedCache>(storage_);
  if (offset % row_bytes_ != 0 || from.size() % row_bytes_ != 0) {
    cache.close_centre();
    return {};
  }
  std::vector<std::int64_t> row_idx(from.size() / row_bytes_);
  std::iota(row_idx.begin(), row_idx.end(), static_cast<std::int64_t>(offset / row_bytes_));
  if (Result<void> kept = cache.keep_precise(row_idx, nullptr); !kept) return kept;
  if (!cache.is_centre_open()) return {};
  row_idx.resize(std::min(kRowsMax, row_idx.size()));
  std::vector<float> rows(row_idx.size() * static_cast<std::size_t>(n_channels_));
  ggml_fp16_to_fp32_row(reinterpret_cast<const ggml_fp16_t*>(from.data()), rows.data(),
                        static_cast<std::int64_t>(rows.size()));
  return cache.observe(row_idx, rows);
}

Result<void> CacheTensor::get(std::span<std::byte> into, std::size_t offset) {
  if (const std::byte* memory = plain(); memory != nullptr) {
    std::memcpy(into.data(), memory + offset, into.size());
    return {};
  }
  if (!is_bound()) {
    std::ranges::fill(into, std::byte{0});
    return {};
  }
  const std::size_t head_bytes = head_row_bytes();
  HeldRows rows(std::get<CompressedCache>(storage_), Access::kRead);
  HeadRow head;
  while (!into.empty()) {
    if (Result<void> held = rows.move_to(static_cast<std::int64_t>(offset / row_bytes_)); !held) {
      return held;
    }
    get_head(offset, head);
    const std::size_t start = offset % head_bytes;
    const std::size_t n_bytes = std::min(head_bytes - start, into.size());
    std::memcpy(into.data(), reinterpret_cast<const std::byte*>(head.data()) + start, n_bytes);
    into = into.subspan(n_bytes);
    offset += n_bytes;
  }
  return {};
}

Result<void> CacheTensor::set(std::span<const std::byte> from, std::size_t offset) {
  // No attention has shown yet how this tensor is read, so it is kept exactly.
  if (!is_bound()) {
    if (Result<void> bound = bind_plain(); !bound) return bound;
  }
  if (std::byte* memory = plain(); memory != nullptr) {
    std::memcpy(memory + offset, from.data(), from.size());
    return {};
  }
  try {
    if (Result<void> prepared = prepare_for(from, offset); !prepared) return prepared;
  } catch (const std::bad_alloc&) {
    // The rows are stored all the same, around the centre that there is and without 8-bit copies.
    std::get<CompressedCache>(storage_).close_centre();
  }
  return store(from, offset);
}

Result<void> CacheTensor::memset(std::uint8_t value, std::size_t offset, std::size_t size) {
  if (value == 0 && (!is_bound() || size == row_bytes_ * static_cast<std::size_t>(n_rows()))) {
    clear();
    return {};
  }
  if (!is_bound()) {
    if (Result<void> bound = bind_plain(); !bound) return bound;
  }
  if (std::byte* memory = plain(); memory != nullptr) {
    std::memset(memory + offset, value, size);
    return {};
  }
  // Such rows are no model's: they set no centre and take no place among the 8-bit copies.
  std::get<CompressedCache>(storage_).close_centre();
  std::array<std::byte, 4096> block;
  block.fill(std::byte{value});
  while (size > 0) {
    const std::size_t n_bytes = std::min(size, block.size());
    Result<void> stored = store(std::span(block).first(n_bytes), offset);
    if (!stored) return stored;
    offset += n_bytes;
    size -= n_bytes;
  }
  return {};
}

void CacheTensor::clear() {
  if (CompressedCache* cache = compressed(); cache != nullptr) cache->clear();
  if (Mapping* memory = std::get_if<Mapping>(&storage_); memory != nullptr) memory->zero();
}

}  // namespace slipstream::turbo
