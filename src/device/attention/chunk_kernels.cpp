// This file is compiled once for every instruction set that Highway knows on this architecture. The
// first call chooses the best one that the machine has.
#include "device/attention/chunk_kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "device/codec/codebook.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/attention/chunk_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
// NOLINTBEGIN(misc-use-internal-linkage): HWY_EXPORT needs names; clang loses the target in
// namespace {}

namespace hn = hwy::HWY_NAMESPACE;

// Vectors of at most 16 lanes of 32 bits: the slots of a tile fill one, two or four registers.
using Floats = hn::CappedTag<float, kTileTokens>;
using Words = hn::Rebind<std::int32_t, Floats>;
using Bytes = hn::Repartition<std::uint8_t, Words>;
using SignedBytes = hn::Repartition<std::int8_t, Words>;
using Halfs = hn::Rebind<hwy::float16_t, Floats>;
using NarrowBytes = hn::Rebind<std::uint8_t, Words>;

constexpr std::size_t kGroupBytes = 64;
constexpr std::size_t kSlots = kTileTokens;

// With 8 rows the kernels need sixteen registers for accumulators and a few besides.
constexpr int kRowsAtOnce = HWY_MAX_BYTES >= 64 ? 8 : 4;

// Prefetches a line that will be read soon; it may lie behind the mapped memory. One prefetch per
// line read is fast; many at once wait for each other (measured, see docs/benchmarks.md).
HWY_INLINE void prefetch(const std::uint8_t* line) { __builtin_prefetch(line); }

HWY_INLINE auto broadcast_quad(const void* four_bytes) {
  std::int32_t word;
  std::memcpy(&word, four_bytes, sizeof(word));
  return hn::Set(Words(), word);
}

// --- expansion

// Parameters that are the same for every tile of a side.
struct Expansion {
  std::size_t n_channels;
  const std::int8_t* levels;   // 16 of them; not used at 8 bits
  std::size_t prefetch_bytes;  // distance to the same tile of the chunk that is read next
};

// Calls store(quad, bytes) for each group of four positions of a tile. The bytes are levels with
// the bits of `flip` inverted: a flip of 128 gives level + 128.
template <int kBits, class Store>
HWY_INLINE void expand_tile(const Expansion& expansion, std::uint8_t flip,
                            const std::uint8_t* HWY_RESTRICT codes, std::size_t slot,
                            const Store& store) {
  const Bytes db;
  const hn::Repartition<std::uint16_t, Bytes> dh;
  const std::size_t head_dim = expansion.n_channels;
  const std::size_t ahead = expansion.prefetch_bytes;
  auto table = hn::Zero(db);
  if constexpr (kBits != 8) {
    const auto* levels = reinterpret_cast<const std::uint8_t*>(expansion.levels);
    table = hn::Xor(hn::LoadDup128(db, levels), hn::Set(db, flip));
  }
  if constexpr (kBits == 8) {
    for (std::size_t quad = 0; quad < head_dim / 4; ++quad) {
      if (slot == 0) prefetch(codes + quad * kGroupBytes + ahead);
      // A code is level + 128.
      const auto code = hn::LoadU(db, codes + quad * kGroupBytes + slot * 4);
      store(quad, hn::Xor(code, hn::Set(db, static_cast<std::uint8_t>(flip ^ 128U))));
    }
  } else if constexpr (kBits == 3) {
    const std::uint8_t* HWY_RESTRICT high = codes + plane_bytes(2, static_cast<int>(head_dim));
    for (std::size_t start = 0; start < head_dim; start += 16) {
      if (slot == 0) {
        prefetch(codes + start / 16 * kGroupBytes + ahead);
        if (start % 32 == 0) prefetch(high + start / 32 * kGroupBytes + ahead);
      }
      auto low_bits = hn::BitCast(dh, hn::LoadU(db, codes + start / 16 * kGroupBytes + slot * 4));
      auto high_bits = hn::BitCast(dh, hn::LoadU(db, high + start / 32 * kGroupBytes + slot * 4));
      // Moves the bit of the first quad to bit 2, its place in the code.
      high_bits = start % 32 == 0 ? hn::ShiftLeft<2>(high_bits) : hn::ShiftRight<2>(high_bits);
      for (std::size_t k = 0; k < 4; ++k) {
        // Shifting 16-bit lanes moves bits across bytes; the masks remove them.
        const auto low = hn::And(hn::BitCast(db, low_bits), hn::Set(db, std::uint8_t{3}));
        const auto one = hn::And(hn::BitCast(db, high_bits), hn::Set(db, std::uint8_t{4}));
        store(start / 4 + k, hn::TableLookupBytes(table, hn::Or(low, one)));
        low_bits = hn::ShiftRight<2>(low_bits);
        high_bits = hn::ShiftRight<1>(high_bits);
      }
    }
  } else {
    constexpr std::size_t kQuads = 8 / kBits;  // per group
    constexpr std::uint8_t kMask = (1U << kBits) - 1U;
    for (std::size_t group = 0; group * kQuads < head_dim / 4; ++group) {
      if (slot == 0) prefetch(codes + group * kGroupBytes + ahead);
      auto bits = hn::BitCast(dh, hn::LoadU(db, codes + group * kGroupBytes + slot * 4));
      for (std::size_t k = 0; k < kQuads; ++k) {
        const auto code = hn::And(hn::BitCast(db, bits), hn::Set(db, kMask));
        store(group * kQuads + k, hn::TableLookupBytes(table, code));
        bits = hn::ShiftRight<kBits>(bits);
      }
    }
  }
}

template <int kBits>
void expand_keys_of(const Expansion& expansion, const std::uint8_t* HWY_RESTRICT codes,
                    std::uint8_t* HWY_RESTRICT bytes) {
  for (std::size_t slot = 0; slot < kSlots; slot += hn::Lanes(Words())) {
    expand_tile<kBits>(expansion, 128, codes, slot, [&](std::size_t quad, auto values) HWY_ATTR {
      hn::StoreU(values, Bytes(), bytes + quad * kGroupBytes + slot * 4);
    });
  }
}

template <int kBits>
void expand_values_of(const Expansion& expansion, const std::uint8_t* HWY_RESTRICT codes,
                      std::size_t tile, std::int8_t* HWY_RESTRICT bytes) {
  // Four quads hold the tokens of 16 channels. The same four quads of the chunk's other tiles
  // follow before the next 16 channels.
  auto* HWY_RESTRICT to = reinterpret_cast<std::uint8_t*>(bytes) + tile * 4 * kGroupBytes;
  for (std::size_t slot = 0; slot < kSlots; slot += hn::Lanes(Words())) {
    expand_tile<kBits>(expansion, 0, codes, slot, [&](std::size_t quad, auto values) HWY_ATTR {
      const std::size_t place = quad / 4 * 4 * kChunkTiles + quad % 4;
      hn::StoreU(values, Bytes(), to + place * kGroupBytes + slot * 4);
    });
  }
}

// Expands one class and advances the pointers to the next.
template <int kBits>
HWY_INLINE void expand_class(const Expansion& expansion, const std::uint8_t*& codes,
                             std::uint8_t*& bytes) {
  expand_keys_of<kBits>(expansion, codes, bytes);
  codes += tile_code_bytes(kBits, static_cast<int>(expansion.n_channels));
  bytes += expansion.n_channels * kSlots;
}

void ExpandKeys(const KeyCodes& form, const std::uint8_t* codes, std::uint8_t* bytes,
                std::size_t chunks_ahead) {
  Expansion expansion{.n_channels = 0,
                      .levels = nullptr,
                      .prefetch_bytes = chunks_ahead * kChunkTiles * form.tile_bytes};
  for (const auto [bits, n_channels] : form.classes) {
    expansion.n_channels = static_cast<std::size_t>(n_channels);
    if (bits != 8)
      expansion.levels = (form.is_fitted ? fitted_table(bits) : lookup_table(bits)).data();
    switch (bits) {
      case 2: expand_class<2>(expansion, codes, bytes); break;
      case 3: expand_class<3>(expansion, codes, bytes); break;
      case 4: expand_class<4>(expansion, codes, bytes); break;
      default: expand_class<8>(expansion, codes, bytes); break;
    }
  }
}

void ExpandValues(int bits, int head_dim, const std::uint8_t* codes, int tile, std::int8_t* bytes,
                  std::size_t chunks_ahead) {
  const Expansion expansion{
      .n_channels = static_cast<std::size_t>(head_dim),
      .levels = bits == 8 ? nullptr : lookup_table(bits).data(),
      .prefetch_bytes = chunks_ahead * kChunkTiles * tile_code_bytes(bits, head_dim)};
  const auto t = static_cast<std::size_t>(tile);
  switch (bits) {
    case 2: expand_values_of<2>(expansion, codes, t, bytes); break;
    case 3: expand_values_of<3>(expansion, codes, t, bytes); break;
    case 4: expand_values_of<4>(expansion, codes, t, bytes); break;
    default: expand_values_of<8>(expansion, codes, t, bytes); break;
  }
}

// --- products of bytes

template <int kRows>
HWY_INLINE void dot_tile(const std::uint8_t* HWY_RESTRICT tile, std::size_t n_quads,
                         const std::int8_t* HWY_RESTRICT rows, std::size_t row_stride,
                         std::int32_t* HWY_RESTRICT dots) {
  const Words dw;
  const Bytes db;
  const SignedBytes di;
  for (std::size_t slot = 0; slot < kSlots; slot += hn::Lanes(dw)) {
    // Two sums per row, because a single one would wait for the previous product.
    hn::Vec<Words> even[kRows];
    hn::Vec<Words> odd[kRows];
    for (int r = 0; r < kRows; ++r) even[r] = odd[r] = hn::Zero(dw);
    for (std::size_t quad = 0; quad < n_quads; quad += 2) {
      const auto keys0 = hn::LoadU(db, tile + quad * kGroupBytes + slot * 4);
      const auto keys1 = hn::LoadU(db, tile + (quad + 1) * kGroupBytes + slot * 4);
      for (int r = 0; r < kRows; ++r) {
        const std::int8_t* HWY_RESTRICT row = rows + static_cast<std::size_t>(r) * row_stride;
        even[r] = hn::SumOfMulQuadAccumulate(
            dw, keys0, hn::BitCast(di, broadcast_quad(row + quad * 4)), even[r]);
        odd[r] = hn::SumOfMulQuadAccumulate(
            dw, keys1, hn::BitCast(di, broadcast_quad(row + quad * 4 + 4)), odd[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      hn::StoreU(hn::Add(even[r], odd[r]), dw,
                 dots + static_cast<std::size_t>(r) * kChunkTokens + slot);
    }
  }
}

template <int kRows>
HWY_INLINE void dot_some_rows(const DotRows& work, std::size_t first_row) {
  for (std::size_t tile = 0; tile < static_cast<std::size_t>(work.n_tiles); ++tile) {
    dot_tile<kRows>(work.keys + tile * work.tile_bytes,
                    static_cast<std::size_t>(work.n_channels) / 4,
                    work.rows + first_row * work.row_stride, work.row_stride,
                    work.dots + first_row * kChunkTokens + tile * kSlots);
  }
}

void DotRowsKernel(const DotRows& work) {
  const auto n_rows = static_cast<std::size_t>(work.n_rows);
  std::size_t row = 0;
  for (; row + kRowsAtOnce <= n_rows; row += kRowsAtOnce) dot_some_rows<kRowsAtOnce>(work, row);
  if (row + 4 <= n_rows) {
    dot_some_rows<4>(work, row);
    row += 4;
  }
  if (row + 2 <= n_rows) {
    dot_some_rows<2>(work, row);
    row += 2;
  }
  if (row < n_rows) dot_some_rows<1>(work, row);
}

void ScanChunkKernel(const ScanChunk& work) {
  const std::size_t key_tile = work.key_form.tile_bytes;
  const bool is_expanded = work.key_form.is_expanded();
  const std::size_t value_tile = tile_code_bytes(work.value_bits, work.value_dim);
  for (std::size_t tile = 0; tile < static_cast<std::size_t>(work.n_tiles); ++tile) {
    if (work.key_codes != nullptr) {
      if (!is_expanded) {
        ExpandKeys(work.key_form, work.key_codes + tile * key_tile,
                   work.key_bytes + tile * static_cast<std::size_t>(work.key_dim) * kSlots,
                   work.chunks_ahead);
      }
      for (int part = 0; part < work.n_parts; ++part) {
        DotRows dots = work.parts[part];
        dots.keys += tile * dots.tile_bytes;
        if (is_expanded) {
          for (int line = 0; line < dots.n_channels / 4; ++line) {
            prefetch(dots.keys + static_cast<std::size_t>(line) * kGroupBytes +
                     work.chunks_ahead * kChunkTiles * key_tile);
          }
        }
        dots.dots += tile * kSlots;
        dots.n_tiles = 1;
        work.dot == nullptr ? DotRowsKernel(dots) : work.dot(dots);
      }
    }
    if (work.value_bits != 0) {
      ExpandValues(work.value_bits, work.value_dim, work.value_codes + tile * value_tile,
                   static_cast<int>(tile), work.value_bytes, work.chunks_ahead);
    }
  }
}

template <int kRows, int kBlocks>
HWY_INLINE void weighted_sum_panel(const WeightedSumRows& work, std::size_t first_row,
                                   std::size_t first_block) {
  const Words dw;
  const Bytes db;
  const SignedBytes di;
  constexpr std::size_t kBlockBytes = 4 * kChunkTiles * kGroupBytes;
  const std::int8_t* HWY_RESTRICT values = work.values + first_block * kBlockBytes;
  const std::uint8_t* HWY_RESTRICT weights = work.weights + first_row * kChunkTokens;
  std::int32_t* HWY_RESTRICT out = work.sums + first_row * work.sum_stride + first_block * kSlots;
  for (std::size_t slot = 0; slot < kSlots; slot += hn::Lanes(dw)) {
    hn::Vec<Words> sums[kRows][kBlocks];
    for (auto& row : sums) {
      for (auto& sum : row) sum = hn::Zero(dw);
    }
    for (std::size_t quad = 0; quad < 4 * static_cast<std::size_t>(work.n_tiles); ++quad) {
      hn::Vec<SignedBytes> v[kBlocks];
      for (std::size_t b = 0; b < kBlocks; ++b) {
        v[b] = hn::LoadU(di, values + b * kBlockBytes + quad * kGroupBytes + slot * 4);
      }
      for (std::size_t r = 0; r < kRows; ++r) {
        const auto w = hn::BitCast(db, broadcast_quad(weights + r * kChunkTokens + quad * 4));
        for (std::size_t b = 0; b < kBlocks; ++b) {
          sums[r][b] = hn::SumOfMulQuadAccumulate(dw, w, v[b], sums[r][b]);
        }
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t b = 0; b < kBlocks; ++b) {
        hn::StoreU(sums[r][b], dw, out + r * work.sum_stride + b * kSlots + slot);
      }
    }
  }
}

template <int kRows>
HWY_INLINE void weighted_sum_some_rows(const WeightedSumRows& work, std::size_t first_row) {
  const auto n_blocks = static_cast<std::size_t>(work.n_blocks);
  std::size_t block = 0;
  for (; block + 4 <= n_blocks; block += 4) weighted_sum_panel<kRows, 4>(work, first_row, block);
  for (; block < n_blocks; ++block) weighted_sum_panel<kRows, 1>(work, first_row, block);
}

void WeightedSumRowsKernel(const WeightedSumRows& work) {
  constexpr int kPanelRows = kRowsAtOnce / 2;
  const auto n_rows = static_cast<std::size_t>(work.n_rows);
  std::size_t row = 0;
  for (; row + kPanelRows <= n_rows; row += kPanelRows)
    weighted_sum_some_rows<kPanelRows>(work, row);
  for (; row + 2 <= n_rows; row += 2) weighted_sum_some_rows<2>(work, row);
  if (row < n_rows) weighted_sum_some_rows<1>(work, row);
}

// --- between the products

void LoadScales(const std::uint16_t* halfs, int n, float* floats) {
  const Floats df;
  const Halfs dh;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); i += hn::Lanes(df)) {
    const auto* from = reinterpret_cast<const hwy::float16_t*>(halfs + i);
    hn::StoreU(hn::PromoteTo(df, hn::LoadU(dh, from)), df, floats + i);
  }
}

// 1.5 * 2^23. Adding it rounds a number of either sign with a magnitude below 2^22 to an integer,
// which is then in the last bits.
constexpr float kRound = 12582912.0F;

// 2^x for x <= 0; 0 below -125. Relative error below 2e-7 (coefficients of Cephes' exp2f).
template <class V>
HWY_INLINE V exp2_of_negative(V x) {
  const Floats df;
  const Words dw;
  const auto lowest = hn::Set(df, -125.0F);
  const auto clamped = hn::Max(x, lowest);
  const auto rounded = hn::Add(clamped, hn::Set(df, kRound));
  const auto f = hn::Sub(clamped, hn::Sub(rounded, hn::Set(df, kRound)));
  auto p = hn::Set(df, 1.535336188319500e-4F);
  p = hn::MulAdd(p, f, hn::Set(df, 1.339887440266574e-3F));
  p = hn::MulAdd(p, f, hn::Set(df, 9.618437357674640e-3F));
  p = hn::MulAdd(p, f, hn::Set(df, 5.550332471162809e-2F));
  p = hn::MulAdd(p, f, hn::Set(df, 2.402264791363012e-1F));
  p = hn::MulAdd(p, f, hn::Set(df, 6.931472028550421e-1F));
  p = hn::MulAdd(p, f, hn::Set(df, 1.0F));
  const auto power = hn::Add(hn::BitCast(dw, p), hn::ShiftLeft<23>(hn::BitCast(dw, rounded)));
  return hn::IfThenZeroElse(hn::Lt(x, lowest), hn::BitCast(df, power));
}

// softcap * tanh(x), by tanh(x) = 1 - 2 / (1 + e^2x) on |x|.
template <class V>
HWY_INLINE V soft_cap(V x, float cap) {
  const Floats df;
  const auto decay = exp2_of_negative(hn::Mul(hn::Abs(x), hn::Set(df, -2 * kLog2E)));
  const auto one = hn::Set(df, 1.0F);
  const auto tanh = hn::Div(hn::Sub(one, decay), hn::Add(one, decay));
  return hn::Mul(hn::Set(df, cap), hn::CopySign(tanh, x));
}

// The 64 tokens of a chunk are held in registers, if there are enough of them.
constexpr std::size_t kLanes = HWY_MAX_LANES_D(Floats);
constexpr std::size_t kVectors = kChunkTokens / kLanes;

HWY_INLINE void load_scores(const SoftmaxChunk& work, std::size_t q,
                            hn::Vec<Floats> (&scores)[kVectors]) {
  const Floats df;
  const Words dw;
  if (work.dots == nullptr) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      scores[v] = hn::LoadU(df, work.scores + q * kChunkTokens + v * kLanes);
    }
    return;
  }
  const auto n_parts = static_cast<std::size_t>(work.n_key_parts);
  const auto digits = static_cast<std::size_t>(work.n_query_digits);
  const auto query_scale = hn::Set(df, work.query_scales[q]);
  for (auto& score : scores) score = hn::Set(df, work.centre_scores[q]);
  for (std::size_t part = 0; part < n_parts; ++part) {
    const auto offset = hn::Set(dw, work.offsets[q * n_parts + part]);
    const std::int32_t* HWY_RESTRICT dots =
        work.dots + part * work.dot_part_stride + q * digits * kChunkTokens;
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t i = v * kLanes;
      auto dot = hn::LoadU(dw, dots + i);
      if (digits == 2) {
        dot = hn::Add(hn::ShiftLeft<kQueryDigitShift>(dot), hn::LoadU(dw, dots + kChunkTokens + i));
      }
      const std::size_t scale_at = (i / kSlots * n_parts + part) * kSlots + i % kSlots;
      const auto scale = hn::Mul(query_scale, hn::LoadU(df, work.key_scales + scale_at));
      scores[v] = hn::MulAdd(hn::ConvertTo(df, hn::Add(dot, offset)), scale, scores[v]);
    }
  }
}

HWY_INLINE void store_weights(const SoftmaxChunk& work, std::size_t q, std::size_t part,
                              const hn::Vec<Floats> (&weights)[kVectors]) {
  const Floats df;
  const hn::RebindToUnsigned<Words> du;
  const NarrowBytes dn;
  const auto n_parts = static_cast<std::size_t>(work.n_value_parts);
  const auto digits = static_cast<std::size_t>(work.n_weight_digits);
  const float weight_max = digits == 2 ? kWeightMax2 : kWeightMax1;
  std::uint8_t* HWY_RESTRICT out =
      work.weights + part * work.weight_part_stride + q * digits * kChunkTokens;
  hn::Vec<Floats> scaled[kVectors];
  auto largest = hn::Zero(df);
  for (std::size_t v = 0; v < kVectors; ++v) {
    const std::size_t i = v * kLanes;
    const std::size_t scale_at = (i / kSlots * n_parts + part) * kSlots + i % kSlots;
    scaled[v] = hn::Mul(weights[v], hn::LoadU(df, work.value_scales + scale_at));
    largest = hn::Max(largest, scaled[v]);
  }
  const float max = hn::ReduceMax(df, largest);
  work.weight_scales[part * work.weight_scale_part_stride + q] = max * (1 / weight_max);
  const auto per_step = hn::Set(df, max > 0 ? weight_max / max : 0);
  const auto round = hn::Set(df, kRound);
  for (std::size_t lane = 0; lane < kSlots; lane += kLanes) {
    auto carry = hn::Zero(df);
    for (std::size_t i = lane; i < kChunkTokens; i += kSlots) {
      const auto steps = hn::MulAdd(scaled[i / kLanes], per_step, carry);
      const auto rounded = hn::Add(steps, round);
      const auto whole = hn::BitCast(du, rounded);
      if (digits == 2) {
        hn::StoreU(hn::TruncateTo(dn, hn::ShiftRight<8>(whole)), dn, out + i);
        hn::StoreU(hn::TruncateTo(dn, whole), dn, out + kChunkTokens + i);
      } else {
        carry = hn::Sub(steps, hn::Sub(rounded, round));
        hn::StoreU(hn::TruncateTo(dn, whole), dn, out + i);
      }
    }
  }
}

void SoftmaxChunkKernel(const SoftmaxChunk& work) {
  const Floats df;
  const auto minus_infinity = hn::Set(df, -std::numeric_limits<float>::infinity());
  const auto n_tokens = static_cast<std::size_t>(work.n_tokens);
  const bool capped = work.softcap != 0;
  const auto scale = hn::Set(df, capped ? work.scale : work.scale * kLog2E);
  for (std::size_t q = 0; q < static_cast<std::size_t>(work.n_queries); ++q) {
    hn::Vec<Floats> scores[kVectors];
    load_scores(work, q, scores);
    for (auto& score : scores) score = hn::Mul(score, scale);
    if (capped) {
      for (auto& score : scores) score = soft_cap(score, work.softcap * kLog2E);
    }
    if (const float* HWY_RESTRICT bias = work.bias[q]; bias != nullptr) {
      const auto slope = hn::Set(df, work.slopes[q] * kLog2E);
      for (std::size_t v = 0; v < kVectors; ++v) {
        scores[v] = hn::MulAdd(slope, hn::LoadU(df, bias + v * kLanes), scores[v]);
      }
    }
    if (n_tokens < kChunkTokens) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        const std::size_t n_here = n_tokens - std::min(n_tokens, v * kLanes);
        scores[v] = hn::IfThenElse(hn::FirstN(df, n_here), scores[v], minus_infinity);
      }
    }
    auto largest = scores[0];
    for (std::size_t v = 1; v < kVectors; ++v) largest = hn::Max(largest, scores[v]);
    const float chunk_max = hn::ReduceMax(df, largest);
    float rescale = 1;
    if (chunk_max > work.max[q]) {
      rescale = hn::GetLane(exp2_of_negative(hn::Set(df, work.max[q] - chunk_max)));  // 0 at first
      work.max[q] = chunk_max;
    }
    work.rescale[q] = rescale;
    // If nothing is visible, the difference to the maximum would be NaN.
    const bool is_hidden = chunk_max == -std::numeric_limits<float>::infinity();
    const auto max = hn::Set(df, is_hidden ? 0 : work.max[q]);
    for (auto& score : scores) score = exp2_of_negative(hn::Sub(score, max));

    for (std::size_t lane = 0; lane < kSlots; lane += kLanes) {
      float* HWY_RESTRICT sums = work.weight_sums + q * kSlots + lane;
      auto sum = hn::Mul(hn::LoadU(df, sums), hn::Set(df, rescale));
      for (std::size_t i = lane; i < kChunkTokens; i += kSlots) {
        sum = hn::Add(sum, scores[i / kLanes]);
      }
      hn::StoreU(sum, df, sums);
    }
    if (work.value_scales == nullptr) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        hn::StoreU(scores[v], df, work.scores + q * kChunkTokens + v * kLanes);
      }
    }
    for (std::size_t part = 0; part < static_cast<std::size_t>(work.n_value_parts); ++part) {
      store_weights(work, q, part, scores);
    }
  }
}

void AccumulateOutputKernel(const AccumulateOutput& work) {
  const Floats df;
  const Words dw;
  const auto digits = static_cast<std::size_t>(work.n_digits);
  for (std::size_t q = 0; q < static_cast<std::size_t>(work.n_queries); ++q) {
    const std::int32_t* HWY_RESTRICT sums = work.sums + q * digits * work.sum_stride;
    float* HWY_RESTRICT output = work.output + q * work.output_stride;
    const auto scale = hn::Set(df, work.weight_scales[q]);
    const auto rescale = hn::Set(df, work.rescale[q]);
    for (std::size_t i = 0; i < static_cast<std::size_t>(work.n_channels); i += hn::Lanes(df)) {
      auto sum = hn::LoadU(dw, sums + i);
      if (digits == 2) {
        sum = hn::Add(hn::ShiftLeft<kWeightDigitShift>(sum),
                      hn::LoadU(dw, sums + work.sum_stride + i));
      }
      const auto before = hn::Mul(hn::LoadU(df, output + i), rescale);
      hn::StoreU(hn::MulAdd(hn::ConvertTo(df, sum), scale, before), df, output + i);
    }
  }
}

// --- rows that are not compressed

HWY_INLINE auto load_half(const std::uint16_t* from) {
  return hn::PromoteTo(Floats(), hn::LoadU(Halfs(), reinterpret_cast<const hwy::float16_t*>(from)));
}

void ScorePlain(const std::uint16_t* keys, std::size_t row_stride, int n_tokens,
                const float* HWY_RESTRICT query, int head_dim, float* HWY_RESTRICT scores) {
  const Floats df;
  for (std::size_t token = 0; token < static_cast<std::size_t>(n_tokens); ++token) {
    const std::uint16_t* HWY_RESTRICT key = keys + token * row_stride;
    auto sum = hn::Zero(df);
    for (std::size_t c = 0; c < static_cast<std::size_t>(head_dim); c += hn::Lanes(df)) {
      sum = hn::MulAdd(load_half(key + c), hn::LoadU(df, query + c), sum);
    }
    scores[token] = hn::ReduceSum(df, sum);
  }
}

void AccumulatePlain(const std::uint16_t* values, std::size_t row_stride, int n_tokens,
                     const float* HWY_RESTRICT weights, float rescale, int head_dim,
                     float* HWY_RESTRICT output) {
  const Floats df;
  for (std::size_t c = 0; c < static_cast<std::size_t>(head_dim); c += hn::Lanes(df)) {
    auto sum = hn::Mul(hn::LoadU(df, output + c), hn::Set(df, rescale));
    for (std::size_t token = 0; token < static_cast<std::size_t>(n_tokens); ++token) {
      sum =
          hn::MulAdd(load_half(values + token * row_stride + c), hn::Set(df, weights[token]), sum);
    }
    hn::StoreU(sum, df, output + c);
  }
}

// NOLINTEND(misc-use-internal-linkage)
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slipstream::turbo {

HWY_EXPORT(ExpandKeys);
HWY_EXPORT(ExpandValues);
HWY_EXPORT(DotRowsKernel);
HWY_EXPORT(ScanChunkKernel);
HWY_EXPORT(WeightedSumRowsKernel);
HWY_EXPORT(LoadScales);
HWY_EXPORT(SoftmaxChunkKernel);
HWY_EXPORT(AccumulateOutputKernel);
HWY_EXPORT(ScorePlain);
HWY_EXPORT(AccumulatePlain);

void expand_keys(const KeyCodes& form, const std::uint8_t* codes, std::uint8_t* bytes) {
  HWY_DYNAMIC_DISPATCH(ExpandKeys)(form, codes, bytes, 1);
}
void expand_values(int bits, int head_dim, const std::uint8_t* codes, int tile,
                   std::int8_t* bytes) {
  HWY_DYNAMIC_DISPATCH(ExpandValues)(bits, head_dim, codes, tile, bytes, 1);
}
void dot_rows(const DotRows& work) { HWY_DYNAMIC_DISPATCH(DotRowsKernel)(work); }
void scan_chunk(const ScanChunk& work) { HWY_DYNAMIC_DISPATCH(ScanChunkKernel)(work); }
void weighted_sum_rows(const WeightedSumRows& work) {
  HWY_DYNAMIC_DISPATCH(WeightedSumRowsKernel)(work);
}
void load_scales(const std::uint16_t* halfs, int n, float* floats) {
  HWY_DYNAMIC_DISPATCH(LoadScales)(halfs, n, floats);
}
void softmax_chunk(const SoftmaxChunk& work) { HWY_DYNAMIC_DISPATCH(SoftmaxChunkKernel)(work); }
void accumulate_output(const AccumulateOutput& work) {
  HWY_DYNAMIC_DISPATCH(AccumulateOutputKernel)(work);
}
void score_plain(const std::uint16_t* keys, std::size_t row_stride, int n_tokens,
                 const float* query, int head_dim, float* scores) {
  HWY_DYNAMIC_DISPATCH(ScorePlain)(keys, row_stride, n_tokens, query, head_dim, scores);
}
void accumulate_plain(const std::uint16_t* values, std::size_t row_stride, int n_tokens,
                      const float* weights, float rescale, int head_dim, float* output) {
  HWY_DYNAMIC_DISPATCH(AccumulatePlain)
  (values, row_stride, n_tokens, weights, rescale, head_dim, output);
}

}  // namespace slipstream::turbo
#endif
