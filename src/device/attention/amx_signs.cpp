#include "device/attention/amx_signs.h"

#include <algorithm>
#include <limits>

#include "device/attention/amx.h"
#include "device/codec/tile.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace slipstream::turbo {

void make_digit_tiles(const std::int8_t* digits, std::size_t row_stride, int n_rows,
                      std::span<const std::uint16_t> planes, std::int8_t* tiles) {
  const auto n = static_cast<std::size_t>(n_rows);
  const std::size_t group_bytes = n_digit_tiles(planes.size()) * kDigitTileBytes;
  std::fill_n(tiles, (n + kAmxRows - 1) / kAmxRows * group_bytes, std::int8_t{0});
  for (std::size_t row = 0; row < n; ++row) {
    std::int8_t* query = tiles + row / kAmxRows * group_bytes + row % kAmxRows * 4;
    for (const std::uint16_t plane : planes) {
      const std::int8_t* from = digits + row * row_stride + std::size_t{plane} * 8;
      std::copy_n(from, 4, query);
      std::copy_n(from + 4, 4, query + 64);
      query += 128;
    }
  }
}

#if defined(__x86_64__)

#define SLIP_AMX_SIGNS __attribute__((target("amx-int8,amx-tile,avx512f,avx512bw,f16c")))

namespace {

constexpr std::size_t kTileBytes = 1024;
constexpr std::size_t kMostTiles = n_digit_tiles(kHeadDimMax / 8);
// Chunks are fetched this many before they are read.
constexpr std::size_t kAmxChunksAhead = 8;

// The signs of a token's 64 channels, one number each.
using TokenSigns = std::uint64_t[kChunkTokens];

// Where token `row` of a tile is in TokenSigns: as interleaving bytes leaves it.
constexpr std::size_t place_of(std::size_t tile, std::size_t row) {
  return row / 2 * 8 + tile * 2 + row % 2;
}

// Turns eight planes of a chunk around: from the bytes of all tokens to the signs of each token.
SLIP_AMX_SIGNS void gather_signs(const std::uint8_t* first_plane, std::size_t plane_bytes,
                                 std::span<const std::uint16_t> planes, std::ptrdiff_t ahead,
                                 TokenSigns& signs) {
  __m512i plane[kPlanesPerTile];
  for (std::size_t i = 0; i < kPlanesPerTile; ++i) {
    plane[i] = _mm512_setzero_si512();
    if (i >= planes.size()) continue;
    const std::uint8_t* from = first_plane + planes[i] * plane_bytes;
    __builtin_prefetch(from + ahead);
    plane[i] = _mm512_loadu_si512(from);
  }
  __m512i two[8];  // [pair of planes][tokens 0-7, 8-15 of each tile]
  for (std::size_t i = 0; i < 4; ++i) {
    two[2 * i] = _mm512_unpacklo_epi8(plane[2 * i], plane[2 * i + 1]);
    two[2 * i + 1] = _mm512_unpackhi_epi8(plane[2 * i], plane[2 * i + 1]);
  }
  __m512i four[8];  // [planes 0-3, 4-7][tokens 0-3, 4-7, 8-11, 12-15 of each tile]
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      four[4 * i + 2 * j] = _mm512_unpacklo_epi16(two[4 * i + j], two[4 * i + 2 + j]);
      four[4 * i + 2 * j + 1] = _mm512_unpackhi_epi16(two[4 * i + j], two[4 * i + 2 + j]);
    }
  }
  for (std::size_t j = 0; j < 4; ++j) {
    _mm512_store_si512(signs + 16 * j, _mm512_unpacklo_epi32(four[j], four[4 + j]));
    _mm512_store_si512(signs + 16 * j + 8, _mm512_unpackhi_epi32(four[j], four[4 + j]));
  }
}

// The signs of sixteen tokens as bytes 1 and -1.
SLIP_AMX_SIGNS void expand_tile(const TokenSigns& signs, std::size_t tile, std::int8_t* bytes) {
  const __m512i plus = _mm512_set1_epi8(1);
  const __m512i minus = _mm512_set1_epi8(-1);
  for (std::size_t row = 0; row < kTileTokens; ++row) {
    const __mmask64 positive = _cvtu64_mask64(signs[place_of(tile, row)]);
    _mm512_store_si512(bytes + row * 64, _mm512_mask_blend_epi8(positive, minus, plus));
  }
}

SLIP_AMX_SIGNS void load_sign_scales(const std::uint8_t* bytes, float* scales) {
  for (std::size_t i = 0; i < kChunkTokens; i += 16) {
    const __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i));
    const __m256i halfs = _mm256_slli_epi16(_mm256_cvtepu8_epi16(sixteen), 7);
    _mm512_store_ps(scales + i, _mm512_cvtph_ps(halfs));
  }
}

SLIP_AMX_SIGNS __m512 best_of_tile(const std::int32_t* dots, const float* scales, __m512 best) {
  // Four at a time, because each waits for the one before it.
  __m512 largest[4] = {best, best, best, best};
  for (std::size_t token = 0; token < kTileTokens; ++token) {
    const __m512 dot = _mm512_cvtepi32_ps(_mm512_load_si512(dots + token * kAmxRows));
    __m512& one = largest[token % 4];
    one = _mm512_max_ps(one, _mm512_mul_ps(dot, _mm512_set1_ps(scales[token])));
  }
  return _mm512_max_ps(_mm512_max_ps(largest[0], largest[1]),
                       _mm512_max_ps(largest[2], largest[3]));
}

}  // namespace

SLIP_AMX_SIGNS void amx_scan_signs(const AmxSignScan& work) {
  const std::size_t n_tiles = n_digit_tiles(work.planes.size());
  const auto n_rows = static_cast<std::size_t>(work.n_rows);
  const std::size_t n_groups = (n_rows + kAmxRows - 1) / kAmxRows;
  constexpr std::size_t kMostGroups = 16;  // kGroupMax queries
  alignas(64) TokenSigns signs[kMostTiles];
  alignas(64) std::int8_t bytes[kMostTiles][kTileBytes];
  alignas(64) std::int32_t dots[kTileTokens * kAmxRows];
  alignas(64) float scales[kChunkTokens];
  alignas(64) float best[kMostGroups][kAmxRows];
  for (std::size_t i = 0; i < work.chunks.size(); ++i) {
    const std::ptrdiff_t chunk = work.chunks[i];
    const std::ptrdiff_t next = work.chunks[std::min(i + kAmxChunksAhead, work.chunks.size() - 1)];
    const std::ptrdiff_t ahead = (next - chunk) * kChunkTokens;
    for (std::size_t t = 0; t < n_tiles; ++t) {
      const std::size_t first = t * kPlanesPerTile;
      gather_signs(work.signs + chunk * kChunkTokens, work.plane_bytes,
                   work.planes.subspan(first, std::min(kPlanesPerTile, work.planes.size() - first)),
                   ahead, signs[t]);
    }
    load_sign_scales(work.scales + chunk * kChunkTokens, scales);
    std::ranges::fill(std::span(best[0], n_groups * kAmxRows),
                      -std::numeric_limits<float>::infinity());
    for (std::size_t tile = 0; tile < kChunkTiles; ++tile) {
      for (std::size_t t = 0; t < n_tiles; ++t) expand_tile(signs[t], tile, bytes[t]);
      for (std::size_t group = 0; group < n_groups; ++group) {
        _tile_zero(0);
        for (std::size_t t = 0; t < n_tiles; ++t) {
          _tile_loadd(4, bytes[t], 64);
          _tile_loadd(7, work.digit_tiles + (group * n_tiles + t) * kDigitTileBytes, 64);
          _tile_dpbssd(0, 4, 7);
        }
        _tile_stored(0, dots, 64);
        _mm512_store_ps(best[group], best_of_tile(dots, scales + tile * kTileTokens,
                                                  _mm512_load_ps(best[group])));
      }
    }
    for (std::size_t row = 0; row < n_rows; ++row) {
      work.best[row * work.best_stride + static_cast<std::size_t>(chunk)] =
          best[row / kAmxRows][row % kAmxRows] * work.gains[row];
    }
  }
}

#else  // other architectures: never called, because has_amx() is false

void amx_scan_signs(const AmxSignScan&) {}

#endif

}  // namespace slipstream::turbo
