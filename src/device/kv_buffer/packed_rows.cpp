#include "device/kv_buffer/packed_rows.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "base/format.h"
#include "device/log.h"

namespace slipstream::turbo {
namespace {

static_assert(std::endian::native == std::endian::little, "saved as they lie in memory");

struct Exchange {
  void* user = nullptr;
  CentresPlace* centres_place = nullptr;
  RowsPlace* rows_place = nullptr;
  CentresSource* centres_source = nullptr;
  RowsSource* rows_source = nullptr;
  bool is_whole = true;
};
thread_local Exchange exchange;

// The header of a cache whose rows are packed. Its centres follow, n_heads x head_dim f32.
struct CentresHeader {
  std::uint32_t bits;
  std::uint32_t head_dim;
  std::uint32_t n_heads;
  std::uint32_t is_open;  // 1: the cache had fewer rows than a centre needs
  std::uint64_t fit;      // KeyFit::id of the keys' fit; 0: keys are not fitted
};

std::size_t centres_bytes(const CompressedCache& cache) {
  return sizeof(CentresHeader) + cache.centres().size_bytes();
}

CentresHeader header_of(const CompressedCache& cache) {
  return {.bits = static_cast<std::uint32_t>(cache.shape().bits),
          .head_dim = static_cast<std::uint32_t>(cache.shape().head_dim),
          .n_heads = static_cast<std::uint32_t>(cache.shape().n_heads),
          .is_open = cache.is_centre_open() ? 1U : 0U,
          .fit = cache.fit() == nullptr ? 0 : cache.fit()->id()};
}

int side_number(const CacheTensor& cache) { return cache.side() == Side::kKey ? 0 : 1; }

// The program learns of the refusal at the end of the exchange, because ggml's buffer functions
// return nothing.
void refuse(const CacheTensor& cache, std::string_view why) {
  exchange.is_whole = false;
  log_line(GGML_LOG_LEVEL_ERROR,
           format_text("packed {} of layer {}: {}", cache.side() == Side::kKey ? "keys" : "values",
                       cache.layer(), why));
}

struct RowRange {
  std::int64_t first;
  std::size_t n;
};

// A part of a row has no packed form. libllama asks for whole rows.
std::optional<RowRange> whole_rows(const CacheTensor& cache, std::size_t offset,
                                   std::size_t n_bytes) {
  if (offset % cache.row_bytes() != 0 || n_bytes % cache.row_bytes() != 0) {
    refuse(cache, "not whole rows");
    return std::nullopt;
  }
  return RowRange{.first = static_cast<std::int64_t>(offset / cache.row_bytes()),
                  .n = n_bytes / cache.row_bytes()};
}

struct StoredCentres {
  bool is_open;
  std::vector<float> centres;
};

// The bytes come from disk, so they are refused unless they fit this cache and are valid numbers.
std::optional<StoredCentres> read_centres(const CacheTensor& tensor, const CompressedCache& cache) {
  const void* bytes = exchange.centres_source(exchange.user, tensor.layer(), side_number(tensor),
                                              centres_bytes(cache));
  if (bytes == nullptr) {
    refuse(tensor, "no centres of its shape");
    return std::nullopt;
  }
  CentresHeader header{};
  std::memcpy(&header, bytes, sizeof(header));
  const CentresHeader own = header_of(cache);
  if (header.bits != own.bits || header.head_dim != own.head_dim || header.n_heads != own.n_heads ||
      header.is_open > 1) {
    refuse(tensor, "saved from a cache of another shape");
    return std::nullopt;
  }
  if (header.fit != own.fit) {
    refuse(tensor, "its keys were coded with another profile");
    return std::nullopt;
  }
  StoredCentres stored{.is_open = header.is_open == 1,
                       .centres = std::vector<float>(cache.centres().size())};
  std::memcpy(stored.centres.data(), static_cast<const std::byte*>(bytes) + sizeof(header),
              stored.centres.size() * sizeof(float));
  if (!std::ranges::all_of(stored.centres, is_row_number)) {
    refuse(tensor, "a centre that no rows have");
    return std::nullopt;
  }
  return stored;
}

// Compares bits: codes are the same only if centres are, and 0 and -0 are equal floats.
bool are_same(std::span<const float> a, std::span<const float> b) {
  return std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace

void begin_packing(void* user, CentresPlace* centres, RowsPlace* rows) noexcept {
  exchange = {.user = user, .centres_place = centres, .rows_place = rows};
}

void begin_unpacking(void* user, CentresSource* centres, RowsSource* rows) noexcept {
  exchange = {.user = user, .centres_source = centres, .rows_source = rows};
}

bool end_packed_rows() noexcept {
  const bool was_whole = exchange.is_whole;
  exchange = {};
  return was_whole;
}

bool is_exchanging() noexcept {
  return exchange.rows_place != nullptr || exchange.rows_source != nullptr;
}

void fail_packed_rows() noexcept { exchange.is_whole = false; }

bool get_packed(CacheTensor& tensor, const void* place, std::size_t offset, std::size_t n_bytes) {
  const CompressedCache* cache = tensor.compressed();
  if (exchange.rows_place == nullptr || cache == nullptr) return false;
  if (!exchange.is_whole) return true;  // the exchange has failed already
  const std::optional<RowRange> rows = whole_rows(tensor, offset, n_bytes);
  if (!rows) return true;
  void* centres = exchange.centres_place(exchange.user, tensor.layer(), side_number(tensor),
                                         centres_bytes(*cache));
  if (centres != nullptr) {
    const CentresHeader header = header_of(*cache);
    std::memcpy(centres, &header, sizeof(header));
    std::memcpy(static_cast<std::byte*>(centres) + sizeof(header), cache->centres().data(),
                cache->centres().size_bytes());
  }
  const std::size_t packed_bytes = cache->packed_row_bytes();
  auto* packed = static_cast<std::byte*>(
      exchange.rows_place(exchange.user, place, rows->n, tensor.row_bytes(), packed_bytes));
  if (packed == nullptr) {
    refuse(tensor, "no place for its rows");
    return true;
  }
  HeldRows held(*cache, Access::kRead);
  for (std::size_t i = 0; i < rows->n; ++i) {
    const std::int64_t row = rows->first + static_cast<std::int64_t>(i);
    if (Result<void> moved = held.move_to(row); !moved) {
      refuse(tensor, moved.error().message);
      return true;
    }
    cache->pack(row, {packed + i * packed_bytes, packed_bytes});
  }
  return true;
}

bool set_packed(CacheTensor& tensor, const void* place, std::size_t offset, std::size_t n_bytes) {
  CompressedCache* cache = tensor.compressed();
  if (exchange.rows_source == nullptr || cache == nullptr) return false;
  if (!exchange.is_whole) return true;  // the exchange has failed already
  const std::optional<RowRange> rows = whole_rows(tensor, offset, n_bytes);
  if (!rows) return true;
  const std::optional<StoredCentres> stored = read_centres(tensor, *cache);
  if (!stored) return true;
  const std::size_t packed_bytes = cache->packed_row_bytes();
  const auto* packed = static_cast<const std::byte*>(
      exchange.rows_source(exchange.user, place, rows->n, tensor.row_bytes(), packed_bytes));
  if (packed == nullptr) {
    refuse(tensor, "its rows are missing");
    return true;
  }
  Result<void> done;
  if (cache->is_centre_open() && !stored->is_open) done = cache->adopt_centres(stored->centres);
  HeldRows held(*cache, Access::kWrite);
  for (std::size_t i = 0; done && i < rows->n; ++i) {
    const std::int64_t row = rows->first + static_cast<std::int64_t>(i);
    done = held.move_to(row);
    if (done && !cache->unpack(row, {packed + i * packed_bytes, packed_bytes})) {
      refuse(tensor, "a scale that is no number");
      return true;
    }
  }
  if (done && (cache->is_centre_open() || !are_same(stored->centres, cache->centres()))) {
    done = cache->recentre(rows->first, static_cast<std::int64_t>(rows->n), stored->centres);
  }
  if (!done) refuse(tensor, done.error().message);
  return true;
}

}  // namespace slipstream::turbo
