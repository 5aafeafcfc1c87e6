// This file is compiled once for every instruction set that Highway knows on this architecture. The
// first call chooses the best one that the machine has.
#include "device/products/dot_kernels.h"

#include <algorithm>
#include <cstring>

#include "device/products/byte_columns.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/products/dot_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/products/dot_weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
// NOLINTBEGIN(misc-use-internal-linkage): HWY_EXPORT needs names; clang loses the target in
// namespace {}

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kColumnsMax = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
// How far ahead rows are read, which follow each other, and how far their pages are opened.
constexpr std::size_t kAheadBytes = 3072;
constexpr std::size_t kPageAheadBytes = kAheadBytes + 4096;

using Sums = hn::Vec<Words>;

// Sums of four products, of kCount quarters from the first on, added to `sums`.
template <bool kIsSigned, std::size_t kFirst, std::size_t kCount>
HWY_INLINE Sums multiply_quarters(const Piece& piece, std::size_t part, const std::int8_t* numbers,
                                  Sums sums) {
  const Lines* quarters = piece.quarters + kFirst;
  const auto column = [&](std::size_t i) HWY_ATTR {
    return hn::Load(Signed(), numbers + 64 * (kFirst + i) + kVectorBytes * part);
  };
#if HWY_ARCH_X86
  if constexpr (kHasPairs) {
    const auto ones = hn::Set(Shorts(), 1);
    if constexpr (kIsSigned) {
      for (std::size_t i = 0; i < kCount; ++i) {
        const auto signs = hn::BitCast(Signed(), quarters[i].parts[part]);
        const auto pairs =
            hn::SatWidenMulPairwiseAdd(Shorts(), hn::BitCast(Bytes(), hn::Abs(signs)),
                                       hn::IfNegativeThenNegOrUndefIfZero(signs, column(i)));
        sums = hn::Add(sums, hn::WidenMulPairwiseAdd(Words(), pairs, ones));
      }
      return sums;
    }
    // All pairs fit into 16 bits: 4 * 2 * 31 * 127 of Q5_K, 2 * 2 * 63 * 127 of Q6_K.
    auto pairs = hn::SatWidenMulPairwiseAdd(Shorts(), quarters[0].parts[part], column(0));
    for (std::size_t i = 1; i < kCount; ++i) {
      pairs =
          hn::Add(pairs, hn::SatWidenMulPairwiseAdd(Shorts(), quarters[i].parts[part], column(i)));
    }
    return hn::Add(sums, hn::WidenMulPairwiseAdd(Words(), pairs, ones));
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    sums = hn::SumOfMulQuadAccumulate(Words(), quarters[i].parts[part], column(i), sums);
  }
#else
  for (std::size_t i = 0; i < kCount; ++i) {
    sums = hn::SumOfMulQuadAccumulate(Words(), hn::BitCast(Signed(), quarters[i].parts[part]),
                                      column(i), sums);
  }
#endif
  return sums;
}

// Scales of the blocks in a vector, each twice: of kStep scales for a block the one at `offset`.
template <std::size_t kStep>
HWY_INLINE hn::Vec<Floats> spread_scales(const float* scales, std::size_t offset,
                                         std::size_t part) {
  const Floats df;
  const Words dw;
  // Only what was stored at once can be read back fast.
  constexpr std::size_t kStored = kStep == 1 ? hn::MaxLanes(Eight()) : kFloats;
  const std::size_t first = part * kStep * kFloats / 2;
  const std::size_t table = first / kStored * kStored;
  const auto blocks = hn::ShiftRight<1>(hn::Iota(dw, 0));
  const auto idx = hn::IndicesFromVec(
      df, hn::Add(hn::ShiftLeft<kStep - 1>(blocks),
                  hn::Set(dw, static_cast<std::int32_t>(first - table + offset))));
#if HWY_MAX_BYTES >= 64
  if constexpr (kStep == 1) {
    return hn::TableLookupLanes(hn::ZeroExtendVector(df, hn::Load(Eight(), scales)), idx);
  }
#endif
  return hn::TableLookupLanes(hn::Load(df, scales + table), idx);
}

// What sums begin with, to take off what was added to weights.
template <Added kAdded>
HWY_INLINE Sums start_of_sums(const DotColumn& column, std::size_t part) {
  const Words dw;
  const std::int32_t* added = column.added_to_signed + kFloats * part;
  if constexpr (kAdded == Added::kToSigned && kHasVnni) return hn::Load(dw, added);
  // 8, a sixteenth of 128.
  if constexpr (kAdded == Added::kToQ4_0) return hn::ShiftRight<4>(hn::Load(dw, added));
  return hn::Zero(dw);
}

// A row has a vector of sums for each column. One column has two, because each waits for the one
// before.
template <std::size_t kColumns>
constexpr std::size_t kChains = kColumns == 1 ? 2 : 1;
template <std::size_t kColumns>
constexpr std::size_t kRowSums = kColumns * kChains<kColumns>;

template <class Type, std::size_t kColumns>
HWY_INLINE void add_piece(const std::uint8_t* blocks, const DotColumn* columns,
                          hn::Vec<Floats>* sums) {
  const Floats df;
  constexpr Added kAdded = Type::kAdded;
  alignas(64) float scales[2 * kBlocks];
  Type::scales(blocks, scales);
  const Piece piece = Type::weights(blocks);
  for (std::size_t part = 0; part < kParts; ++part) {
    const auto factors = spread_scales<kAdded == Added::kToQ6K ? 2 : 1>(scales, 0, part);
    for (std::size_t c = 0; c < kColumns; ++c) {
      const DotColumn& column = columns[c];
      const auto start = start_of_sums<kAdded>(column, part);
      hn::Vec<Floats> scaled;
      if constexpr (kAdded == Added::kToQ6K) {
        const auto first = multiply_quarters<false, 0, 2>(piece, part, column.numbers, start);
        const auto second = multiply_quarters<false, 2, 2>(piece, part, column.numbers, start);
        scaled = hn::MulAdd(hn::ConvertTo(df, second), spread_scales<2>(scales, 1, part),
                            hn::Mul(hn::ConvertTo(df, first), factors));
      } else {
        constexpr bool kIsSigned = kAdded == Added::kToSigned;
        const auto dots = multiply_quarters<kIsSigned, 0, 4>(piece, part, column.numbers, start);
        scaled = hn::Mul(hn::ConvertTo(df, dots), factors);
      }
      auto& sum = sums[c * kChains<kColumns>];
      sum = hn::MulAdd(scaled, hn::Load(df, column.scales + kFloats * part), sum);
    }
  }
  if constexpr (kAdded == Added::kToQ6K || kAdded == Added::kMinimums) {
    for (std::size_t c = 0; c < kColumns; ++c) {
      const float* numbers =
          kAdded == Added::kToQ6K ? columns[c].added_to_q6_k : columns[c].minimums;
      auto& sum = sums[(c + 1) * kChains<kColumns> - 1];
      // Scales of Q4_K meet zeroes, where a vector has both scales and minima.
      constexpr std::size_t kFirst = kAdded == Added::kToQ6K || kFloats == 16 ? 0 : kBlocks;
      for (std::size_t i = kFirst; i < 2 * kBlocks; i += kFloats) {
        sum = hn::NegMulAdd(hn::Load(df, scales + i), hn::Load(df, numbers + i), sum);
      }
    }
  }
}

// totals[c] = sum of vector c.
template <std::size_t kColumns>
HWY_INLINE void store_totals(const hn::Vec<Floats>* sums, float* totals) {
  const Floats df;
  if constexpr (kColumns == 1) {
    totals[0] = hn::ReduceSum(df, hn::Add(sums[0], sums[1]));
  } else if constexpr (kColumns == 2) {
    totals[0] = hn::ReduceSum(df, sums[0]);
    totals[1] = hn::ReduceSum(df, sums[1]);
  } else {
    const hn::Repartition<double, Floats> dd;
    const hn::FixedTag<float, 4> d4;
    const auto add_two = [&](auto a, auto b) HWY_ATTR {
      return hn::BitCast(dd, hn::Add(hn::InterleaveLower(df, a, b), hn::InterleaveUpper(df, a, b)));
    };
    for (std::size_t c = 0; c < kColumns; c += 4) {
      const auto low = add_two(sums[c], sums[c + 1]);
      const auto high = add_two(sums[c + 2], sums[c + 3]);
      const auto four = hn::Add(hn::BitCast(df, hn::InterleaveLower(dd, low, high)),
                                hn::BitCast(df, hn::InterleaveUpper(dd, low, high)));
#if HWY_MAX_BYTES >= 64
      const hn::Half<Floats> dhalf;
      const auto half = hn::Add(hn::LowerHalf(dhalf, four), hn::UpperHalf(dhalf, four));
      hn::StoreU(hn::Add(hn::LowerHalf(d4, half), hn::UpperHalf(d4, half)), d4, totals + c);
#elif HWY_MAX_BYTES == 32
      hn::StoreU(hn::Add(hn::LowerHalf(d4, four), hn::UpperHalf(d4, four)), d4, totals + c);
#else
      hn::StoreU(four, d4, totals + c);
#endif
    }
  }
}

// Weights come from memory. The machine reads ahead within a page only: one line of the page after
// this one, fetched early, makes it begin there in time (1.2x with one column).
template <std::size_t kBytes>
HWY_INLINE void read_ahead(const std::uint8_t* blocks) {
  for (std::size_t line = 0; line < kBytes; line += 64) {
    __builtin_prefetch(blocks + kAheadBytes + line);
  }
  __builtin_prefetch(blocks + kPageAheadBytes, 0, 2);
}

// totals[c] = row * column c.
template <class Type, std::size_t kColumns>
HWY_INLINE void dot_row(const DotWork& work, std::size_t row, float* totals) {
  constexpr std::size_t kInner = kDotInner;
  const auto n_inner = static_cast<std::size_t>(work.n_inner);
  const auto* blocks = reinterpret_cast<const std::uint8_t*>(work.rows) + row * work.row_bytes;
  const DotColumn* columns = work.columns;
  hn::Vec<Floats> sums[kRowSums<kColumns>];
  for (auto& sum : sums) sum = hn::Zero(Floats());
  for (std::size_t i = 0; i < n_inner / kInner; ++i) {
    read_ahead<Type::kBytes>(blocks);
    add_piece<Type, kColumns>(blocks, columns, sums);
    blocks += Type::kBytes;
    columns += kColumns;
  }
  if (const std::size_t rest_bytes = n_inner % kInner * Type::kBytes / kInner; rest_bytes > 0) {
    std::uint8_t rest[Type::kBytes] = {};
    std::memcpy(rest, blocks, rest_bytes);
    add_piece<Type, kColumns>(rest, columns, sums);
  }
  store_totals<kColumns>(sums, totals);
}

template <class Type, std::size_t kColumns>
void dot_rows(const DotWork& work) {
  for (std::size_t row = 0; row < static_cast<std::size_t>(work.n_rows); ++row) {
    alignas(16) float totals[kColumns];
    dot_row<Type, kColumns>(work, row, totals);
    float* result = work.result + row;
    for (std::size_t c = 0; c < static_cast<std::size_t>(work.n_columns); ++c) {
      float& to = result[c * work.result_stride];
      to = totals[c] + (work.is_first ? 0 : to);
    }
  }
}

template <class Type>
HWY_INLINE void dot_type(const DotWork& work) {
  switch (work.n_group) {
    case 1: return dot_rows<Type, 1>(work);
    case 2: return dot_rows<Type, 2>(work);
    case 4: return dot_rows<Type, 4>(work);
    default:
      if constexpr (kColumnsMax == 8) dot_rows<Type, 8>(work);
  }
}

void DotQ8_0(const DotWork& work) { dot_type<Q8_0>(work); }
void DotQ4_0(const DotWork& work) { dot_type<Q4_0>(work); }
void DotQ4K(const DotWork& work) { dot_type<Q4K>(work); }
void DotQ5K(const DotWork& work) { dot_type<Q5K>(work); }
void DotQ6K(const DotWork& work) { dot_type<Q6K>(work); }
void DotIq4Xs(const DotWork& work) { dot_type<Iq4Xs>(work); }

std::int64_t ColumnsMax() { return std::int64_t{kColumnsMax}; }

void PackDotColumn(const float* numbers, std::int64_t n, DotColumn* to) {
  const Floats df;
  const Words dw;
  alignas(64) std::int8_t rounded[kDotInner] = {};
  alignas(64) float scales[kBlocks] = {};
  alignas(64) std::int32_t sums[kBlocks] = {};
  round_column(
      numbers, n, 0,
      {.numbers = rounded, .scales = scales, .sums = sums, .n_padded = (n + 63) / 64 * 64});
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(rounded);
  const Piece piece = piece_of(load_halves<64>(bytes), load_halves<64>(bytes + 32));
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::size_t first = kFloats * part;
    const auto quarter = [&](std::size_t i) HWY_ATTR {
      const auto numbers_of = hn::BitCast(Signed(), piece.quarters[i].parts[part]);
      hn::Store(numbers_of, Signed(), to->numbers + 64 * i + kVectorBytes * part);
      return numbers_of;
    };
    // A half of a block has two lanes, and then its sum twice.
    const auto sum_half = [&](std::size_t half) HWY_ATTR {
      const auto ones = hn::Set(Bytes(), std::uint8_t{1});
      auto lanes = hn::SumOfMulQuadAccumulate(dw, ones, quarter(2 * half), hn::Zero(dw));
      lanes = hn::SumOfMulQuadAccumulate(dw, ones, quarter(2 * half + 1), lanes);
      return hn::Add(lanes, hn::Reverse2(dw, lanes));
    };
    const auto first_half = sum_half(0);
    const auto second_half = sum_half(1);
    const auto factors = spread_scales<1>(scales, 0, part);
    hn::Store(factors, df, to->scales + first);
    hn::Store(hn::ShiftLeft<6>(hn::Neg(hn::Add(first_half, second_half))), dw,
              to->added_to_signed + first);
    const auto halves = hn::ConvertTo(df, hn::OddEven(second_half, first_half));
    hn::Store(hn::Mul(hn::Mul(factors, hn::Set(df, 32.0F)), halves), df, to->added_to_q6_k + first);
  }
  const Eight de;
  const hn::Rebind<std::int32_t, Eight> de_words;
  for (std::size_t i = 0; i < kBlocks; i += hn::Lanes(de)) {
    const auto block_sums = hn::ConvertTo(de, hn::Load(de_words, sums + i));
    hn::Store(hn::Zero(de), de, to->minimums + i);
    hn::Store(hn::Mul(hn::Load(de, scales + i), block_sums), de, to->minimums + kBlocks + i);
  }
}

// NOLINTEND(misc-use-internal-linkage)
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slipstream::turbo {

HWY_EXPORT(ColumnsMax);
HWY_EXPORT(PackDotColumn);
HWY_EXPORT(DotQ8_0);
HWY_EXPORT(DotQ4_0);
HWY_EXPORT(DotQ4K);
HWY_EXPORT(DotQ5K);
HWY_EXPORT(DotQ6K);
HWY_EXPORT(DotIq4Xs);

std::int64_t dot_columns_max() { return HWY_DYNAMIC_DISPATCH(ColumnsMax)(); }

void pack_dot_column(const float* numbers, std::int64_t n, DotColumn* to) {
  HWY_DYNAMIC_DISPATCH(PackDotColumn)(numbers, n, to);
}

DotKernel dot_kernel(ggml_type type) {
  // Before the first choice a pointer would lead to the code that chooses, at every call.
  hwy::ChosenTarget& chosen = hwy::GetChosenTarget();
  if (!chosen.IsInitialized()) chosen.Update(hwy::SupportedTargets());
  switch (type) {
    case GGML_TYPE_Q8_0: return HWY_DYNAMIC_POINTER(DotQ8_0);
    case GGML_TYPE_Q4_0: return HWY_DYNAMIC_POINTER(DotQ4_0);
    case GGML_TYPE_Q4_K: return HWY_DYNAMIC_POINTER(DotQ4K);
    case GGML_TYPE_Q5_K: return HWY_DYNAMIC_POINTER(DotQ5K);
    case GGML_TYPE_Q6_K: return HWY_DYNAMIC_POINTER(DotQ6K);
    case GGML_TYPE_IQ4_XS: return HWY_DYNAMIC_POINTER(DotIq4Xs);
    default: return nullptr;
  }
}

}  // namespace slipstream::turbo
#endif
