// Compiled once for every instruction set that Highway knows on this architecture; the best one
// that the machine has is chosen at the first call.
#include "device/attention/tile_kernels.h"

#include <cmath>
#include <cstring>

#include "device/codec/codebook.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/attention/tile_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// after highway.h
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
// NOLINTBEGIN(misc-use-internal-linkage): HWY_EXPORT needs names; clang loses the target in
// namespace {}

namespace hn = hwy::HWY_NAMESPACE;

// One register of at most 16 floats: a row of an expanded tile is one, two or four of them.
using Floats = hn::CappedTag<float, kTileTokens>;
using Words = hn::Rebind<std::int32_t, Floats>;
using Bytes = hn::Repartition<std::uint8_t, Words>;
using Halfs = hn::Rebind<hwy::float16_t, Floats>;

// The centroids as bytes, for a lookup by code: repeated in every 16 bytes of a register.
struct Table {
  alignas(16) std::int8_t bytes[16] = {};
};

Table make_table(int bits) {
  Table table;
  const std::span<const std::int8_t> centroids = centroids_i8(bits);
  for (std::size_t i = 0; i < 16; ++i) table.bytes[i] = centroids[i % centroids.size()];
  return table;
}

// Four positions of a word, in its four bytes: one row of the tile each.
template <int kBits, class V>
HWY_INLINE void store_positions(Side side, V words, std::size_t position, std::size_t slot,
                                std::size_t per_scale, const float* HWY_RESTRICT all_scales,
                                float* HWY_RESTRICT tile) {
  // Four positions share a scale's part of the vector: its parts begin at multiples of 16.
  const float* HWY_RESTRICT scales = all_scales + position / per_scale * kTileTokens;
  const Floats df;
  const auto store = [&](auto byte, std::size_t j) HWY_ATTR {
    const auto values = hn::ConvertTo(df, byte);
    const std::size_t row = position + j;
    // A key's scale belongs to its slot, a value's to its position.
    const auto scale =
        side == Side::kKey ? hn::LoadU(df, scales + slot) : hn::Set(df, scales[row % kTileTokens]);
    hn::StoreU(hn::Mul(values, scale), df, tile + row * kTileTokens + slot);
  };
  store(hn::ShiftRight<24>(hn::ShiftLeft<24>(words)), 0);
  store(hn::ShiftRight<24>(hn::ShiftLeft<16>(words)), 1);
  store(hn::ShiftRight<24>(hn::ShiftLeft<8>(words)), 2);
  store(hn::ShiftRight<24>(words), 3);
}

// kBits: 2, 3, 4 or 8. Positions past head_dim are padding of the last word and are not stored.
template <int kBits>
void expand(Side side, const std::uint8_t* HWY_RESTRICT codes, const float* HWY_RESTRICT scales,
            std::size_t head_dim, float* HWY_RESTRICT tile) {
  constexpr int kLowBits = kBits == 3 ? 2 : kBits;
  constexpr std::size_t kPerWord = 32 / kLowBits;
  constexpr unsigned kMask = (1U << kLowBits) - 1U;
  const Words dw;
  const Bytes db;
  const Table centroid_bytes = kBits == 8 ? Table() : make_table(kBits == 8 ? 4 : kBits);
  const auto table = hn::LoadDup128(db, reinterpret_cast<const std::uint8_t*>(
                                            static_cast<const std::int8_t*>(centroid_bytes.bytes)));
  const std::uint8_t* HWY_RESTRICT high = codes + plane_bytes(kLowBits, static_cast<int>(head_dim));
  const std::size_t n_lanes = hn::Lanes(dw);
  const auto per_scale =
      static_cast<std::size_t>(channels_per_scale(side, kBits, static_cast<int>(head_dim)));
  for (std::size_t slot = 0; slot < kTileTokens; slot += n_lanes) {
    for (std::size_t start = 0; start < head_dim; start += kPerWord) {
      const auto low = hn::LoadU(db, codes + start / kPerWord * 64 + slot * 4);
      auto high_bits = hn::Zero(db);
      if constexpr (kBits == 3) high_bits = hn::LoadU(db, high + start / 32 * 64 + slot * 4);
      for (std::size_t k = 0; k < kPerWord / 4 && start + 4 * k < head_dim; ++k) {
        auto bytes = low;
        if constexpr (kBits == 8) {
          bytes = hn::Xor(low, hn::Set(db, std::uint8_t{128}));  // code - 128, as a signed byte
        } else {
          // Shifting 16-bit lanes moves bits across bytes; the mask removes them.
          const hn::Repartition<std::uint16_t, Bytes> dh;
          const auto shifted = hn::BitCast(
              db, hn::ShiftRightSame(hn::BitCast(dh, low), static_cast<int>(k) * kLowBits));
          auto code = hn::And(shifted, hn::Set(db, static_cast<std::uint8_t>(kMask)));
          if constexpr (kBits == 3) {
            const int bit = static_cast<int>(start % 32 / 4 + k);
            const auto one =
                hn::And(hn::BitCast(db, hn::ShiftRightSame(hn::BitCast(dh, high_bits), bit)),
                        hn::Set(db, std::uint8_t{1}));
            code = hn::Or(code, hn::Add(hn::Add(one, one), hn::Add(one, one)));
          }
          bytes = hn::TableLookupBytes(table, code);
        }
        store_positions<kBits>(side, hn::BitCast(dw, bytes), start + 4 * k, slot, per_scale, scales,
                               tile);
      }
    }
  }
}

void ExpandTile(Side side, int bits, const std::uint8_t* codes, const std::uint16_t* scales_f16,
                std::size_t head_dim, float* tile) {
  const Floats df;
  const Halfs dh;
  constexpr int kScalesMax = n_scales(Side::kKey, 8, 1024) * kTileTokens;
  alignas(64) float scales[kScalesMax] = {};
  alignas(64) hwy::float16_t halfs[kScalesMax];
  const auto n =
      static_cast<std::size_t>(n_scales(side, bits, static_cast<int>(head_dim)) * kTileTokens);
  std::memcpy(halfs, scales_f16, n * sizeof(halfs[0]));
  for (std::size_t i = 0; i < n; i += hn::Lanes(df)) {
    hn::Store(hn::PromoteTo(df, hn::LoadU(dh, halfs + i)), df, scales + i);
  }
  switch (bits) {
    case 2: expand<2>(side, codes, scales, head_dim, tile); break;
    case 3: expand<3>(side, codes, scales, head_dim, tile); break;
    case 4: expand<4>(side, codes, scales, head_dim, tile); break;
    default: expand<8>(side, codes, scales, head_dim, tile); break;
  }
}

void ScoreTile(const float* HWY_RESTRICT query, std::size_t head_dim,
               const float* HWY_RESTRICT tile, float* HWY_RESTRICT scores) {
  const Floats df;
  for (std::size_t slot = 0; slot < kTileTokens; slot += hn::Lanes(df)) {
    // Four sums, because one would wait for each multiplication to end. head_dim divides by 16.
    auto sum0 = hn::Zero(df);
    auto sum1 = hn::Zero(df);
    auto sum2 = hn::Zero(df);
    auto sum3 = hn::Zero(df);
    for (std::size_t channel = 0; channel < head_dim; channel += 4) {
      const float* HWY_RESTRICT row = tile + channel * kTileTokens + slot;
      sum0 = hn::MulAdd(hn::Set(df, query[channel]), hn::LoadU(df, row), sum0);
      sum1 = hn::MulAdd(hn::Set(df, query[channel + 1]), hn::LoadU(df, row + 16), sum1);
      sum2 = hn::MulAdd(hn::Set(df, query[channel + 2]), hn::LoadU(df, row + 32), sum2);
      sum3 = hn::MulAdd(hn::Set(df, query[channel + 3]), hn::LoadU(df, row + 48), sum3);
    }
    hn::StoreU(hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)), df, scores + slot);
  }
}

void AccumulateTile(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT tile,
                    std::size_t head_dim, float* HWY_RESTRICT output) {
  const Floats df;
  for (std::size_t block = 0; block < head_dim; block += kTileTokens) {
    for (std::size_t slot = 0; slot < kTileTokens; slot += hn::Lanes(df)) {
      auto sum = hn::LoadU(df, output + block + slot);
      for (std::size_t token = 0; token < kTileTokens; ++token) {
        sum = hn::MulAdd(hn::Set(df, weights[token]),
                         hn::LoadU(df, tile + (block + token) * kTileTokens + slot), sum);
      }
      hn::StoreU(sum, df, output + block + slot);
    }
  }
}

void ScaleVector(float* HWY_RESTRICT x, std::size_t n, float factor) {
  const Floats df;
  for (std::size_t i = 0; i < n; i += hn::Lanes(df)) {  // n divides by 16
    hn::StoreU(hn::Mul(hn::LoadU(df, x + i), hn::Set(df, factor)), df, x + i);
  }
}

float ExpTile(float* HWY_RESTRICT x, float max) {
  const Floats df;
  auto sum = hn::Zero(df);
  for (std::size_t i = 0; i < kTileTokens; i += hn::Lanes(df)) {
    const auto shifted = hn::Sub(hn::LoadU(df, x + i), hn::Set(df, max));
    // Below -80 the exponential is 0 in float for our purpose; Exp is not defined at -infinity.
    const auto small = hn::Lt(shifted, hn::Set(df, -80.0F));
    const auto value =
        hn::IfThenZeroElse(small, hn::Exp(df, hn::Max(shifted, hn::Set(df, -80.0F))));
    sum = hn::Add(sum, value);
    hn::StoreU(value, df, x + i);
  }
  return hn::ReduceSum(df, sum);
}

// NOLINTEND(misc-use-internal-linkage)
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slipstream::turbo {

HWY_EXPORT(ExpandTile);
HWY_EXPORT(ScoreTile);
HWY_EXPORT(AccumulateTile);
HWY_EXPORT(ScaleVector);
HWY_EXPORT(ExpTile);

void expand_tile(Side side, int bits, std::span<const std::uint8_t> codes,
                 std::span<const std::uint16_t> scales, std::span<float> tile) {
  HWY_DYNAMIC_DISPATCH(ExpandTile)
  (side, bits, codes.data(), scales.data(), tile.size() / kTileTokens, tile.data());
}

void score_tile(std::span<const float> query, std::span<const float> tile,
                std::span<float, kTileTokens> scores) {
  HWY_DYNAMIC_DISPATCH(ScoreTile)(query.data(), query.size(), tile.data(), scores.data());
}

void accumulate_tile(std::span<const float, kTileTokens> weights, std::span<const float> tile,
                     std::span<float> output) {
  HWY_DYNAMIC_DISPATCH(AccumulateTile)
  (weights.data(), tile.data(), output.size(), output.data());
}

void scale_vector(std::span<float> x, float factor) {
  HWY_DYNAMIC_DISPATCH(ScaleVector)(x.data(), x.size(), factor);
}

float exp_tile(std::span<float, kTileTokens> x, float max) {
  return HWY_DYNAMIC_DISPATCH(ExpTile)(x.data(), max);
}

}  // namespace slipstream::turbo
#endif
