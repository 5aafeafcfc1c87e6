// This file is compiled once for every instruction set that Highway knows on this architecture. The
// first call chooses the best one that the machine has.
#include "device/products/byte_kernels.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/products/byte_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/products/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
// NOLINTBEGIN(misc-use-internal-linkage): HWY_EXPORT needs names; clang loses the target in
// namespace {}

using Floats = hn::CappedTag<float, 16>;
using Words = hn::Rebind<std::int32_t, Floats>;
using Halfs = hn::Repartition<std::int16_t, Floats>;
using Bytes = hn::Repartition<std::int8_t, Floats>;
using UnsignedBytes = hn::Repartition<std::uint8_t, Floats>;

constexpr std::size_t kRows = hn::MaxLanes(Floats());
// Sums of integers and of floats for each column, and a vector of weights, must fit into registers.
constexpr std::size_t kColumns = HWY_TARGET <= HWY_AVX3 ? 12 : 4;
constexpr std::size_t kQuads = kByteBlock / 4;  // of k

// Whether four products of bytes are added to a word in one instruction (VNNI). Elsewhere two are
// added to 16 bits, which hold the sums of a few quads if weights are small.
constexpr bool kHasQuadProducts = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL;
constexpr bool kHasPairProducts = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;
constexpr int kLargestInPairs = 127;

// How many quads 16 bits hold the sum of, where columns are -128 to 127.
constexpr std::size_t quads_in_16_bits(int largest_weight) {
  return 32767 / (2 * 128 * static_cast<std::size_t>(largest_weight));
}

ByteShape ByteShapeOfTarget() {
  return {.group_rows = std::int64_t{kRows},
          .block_columns = std::int64_t{kColumns},
          .largest_weight = kHasQuadProducts ? 255 : (kHasPairProducts ? kLargestInPairs : -1)};
}

// --- packing

void PackByteRows(const std::uint8_t* rows, std::int64_t n_inner, int n_parts, std::byte* group) {
  constexpr std::size_t kRowWords = kByteRowSlice / 4;
  const std::size_t block_bytes = ByteShapeOfTarget().group_block_bytes(n_parts);
  const auto* words = reinterpret_cast<const std::uint32_t*>(rows);
  const auto n_blocks = static_cast<std::size_t>(n_inner / kByteBlock);
  for (std::size_t block = 0; block < n_blocks; ++block) {
    auto* to = reinterpret_cast<std::uint32_t*>(group + block * block_bytes);
    for (std::size_t quad = 0; quad < kQuads; quad += 4) {
      transpose_four(words + block * kQuads + quad, kRowWords, to + quad * kRows, kRows);
    }
  }
}

void PackByteColumn(const ByteColumns& column, std::int64_t n_inner, int n_parts, std::int64_t idx,
                    std::byte* columns) {
  const std::size_t block_bytes = ByteShapeOfTarget().column_block_bytes(n_parts);
  const auto n_blocks = static_cast<std::size_t>(n_inner / kByteBlock);
  const auto n_sums = static_cast<std::size_t>(n_parts);
  const std::size_t n_in_part = kByteBlock / n_sums;
  const auto c = static_cast<std::size_t>(idx);
  for (std::size_t block = 0; block < n_blocks; ++block) {
    const std::int8_t* numbers = column.numbers + block * kByteBlock;
    std::byte* to = columns + block * block_bytes;
    for (std::size_t quad = 0; quad < kQuads; ++quad) {
      std::memcpy(to + (quad * kColumns + c) * 4, numbers + quad * 4, 4);
    }
    auto* scales = reinterpret_cast<float*>(to + kQuads * kColumns * 4);
    scales[c] = column.scales[block];
    for (std::size_t part = 0; part < n_sums; ++part) {
      std::int32_t sum = n_sums == 1 ? column.sums[block] : 0;
      for (std::size_t i = 0; n_sums > 1 && i < n_in_part; ++i)
        sum += numbers[part * n_in_part + i];
      scales[(1 + part) * kColumns + c] = static_cast<float>(sum) * column.scales[block];
    }
  }
}

// --- products

// The four bytes of a column, for each row.
HWY_INLINE hn::Vec<Bytes> quad_of_column(const std::byte* numbers) {
  std::int32_t word;
  std::memcpy(&word, numbers, sizeof(word));
  return hn::BitCast(Bytes(), hn::Set(Words(), word));
}

// sums[column][row] = sum over kPartQuads quads. kQuadsInSum are added in 16 bits.
//
// Loops are unrolled because g++ 16 otherwise moves the sums between registers in every round; not
// further, because it then keeps them in memory on AVX2.
template <std::size_t kPartQuads, std::size_t kQuadsInSum>
HWY_INLINE void multiply_quads(const std::byte* HWY_RESTRICT weights,
                               const std::byte* HWY_RESTRICT numbers, hn::Vec<Words>* sums) {
  const UnsignedBytes db;
  const Words dw;
  for (std::size_t c = 0; c < kColumns; ++c) sums[c] = hn::Zero(dw);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
  HWY_UNROLL(8)
  for (std::size_t quad = 0; quad < kPartQuads; ++quad) {
    const auto of_rows =
        hn::LoadU(db, reinterpret_cast<const std::uint8_t*>(weights) + quad * kRows * 4);
    for (std::size_t c = 0; c < kColumns; ++c) {
      sums[c] = hn::SumOfMulQuadAccumulate(
          dw, of_rows, quad_of_column(numbers + (quad * kColumns + c) * 4), sums[c]);
    }
  }
#else
  const Halfs dh;
  const auto one = hn::Set(dh, std::int16_t{1});
  HWY_UNROLL(8)
  for (std::size_t first = 0; first < kPartQuads; first += kQuadsInSum) {
    hn::Vec<Halfs> pairs[kColumns];
    for (std::size_t c = 0; c < kColumns; ++c) pairs[c] = hn::Zero(dh);
    HWY_UNROLL(4)
    for (std::size_t quad = first; quad < first + kQuadsInSum; ++quad) {
      const auto of_rows =
          hn::LoadU(db, reinterpret_cast<const std::uint8_t*>(weights) + quad * kRows * 4);
      for (std::size_t c = 0; c < kColumns; ++c) {
        const auto number = quad_of_column(numbers + (quad * kColumns + c) * 4);
        pairs[c] = hn::Add(pairs[c], hn::SatWidenMulPairwiseAdd(dh, of_rows, number));
      }
    }
    for (std::size_t c = 0; c < kColumns; ++c) {
      sums[c] = hn::Add(sums[c], hn::WidenMulPairwiseAdd(dw, pairs[c], one));
    }
  }
#endif
}

template <std::size_t kParts, std::size_t kQuadsInSum>
HWY_INLINE void multiply_byte_block(const MultiplyBytes& work, float* HWY_RESTRICT result,
                                    std::size_t stride, bool is_first) {
  constexpr std::size_t kPartQuads = kQuads / kParts;
  const Floats df;
  hn::Vec<Floats> sums[kColumns];
  for (std::size_t c = 0; c < kColumns; ++c) {
    sums[c] = is_first ? hn::Zero(df) : hn::LoadU(df, result + c * stride);
  }
  const std::byte* HWY_RESTRICT group = work.group;
  const std::byte* HWY_RESTRICT columns = work.columns;
  for (std::int64_t block = 0; block < work.n_blocks; ++block) {
    const auto* scales = reinterpret_cast<const float*>(group + kQuads * kRows * 4);
    const auto* column_scales = reinterpret_cast<const float*>(columns + kQuads * kColumns * 4);
    HWY_UNROLL(2)
    for (std::size_t part = 0; part < kParts; ++part) {
      hn::Vec<Words> words[kColumns];
      multiply_quads<kPartQuads, kQuadsInSum>(group + part * kPartQuads * kRows * 4,
                                              columns + part * kPartQuads * kColumns * 4, words);
      const auto scale = hn::LoadU(df, scales + part * kRows);
      const auto minimum = hn::LoadU(df, scales + (kParts + part) * kRows);
      for (std::size_t c = 0; c < kColumns; ++c) {
        const auto scaled = hn::Mul(hn::ConvertTo(df, words[c]), scale);
        sums[c] = hn::MulAdd(scaled, hn::Set(df, column_scales[c]), sums[c]);
        sums[c] =
            hn::NegMulAdd(minimum, hn::Set(df, column_scales[(1 + part) * kColumns + c]), sums[c]);
      }
    }
    group += kRows * (kByteBlock + 8 * kParts);
    columns += kColumns * (kByteBlock + 4 + 4 * kParts);
  }
  for (std::size_t c = 0; c < kColumns; ++c) hn::StoreU(sums[c], df, result + c * stride);
}

HWY_INLINE void multiply_any_bytes(const MultiplyBytes& work, float* result, std::size_t stride,
                                   bool is_first) {
  if (work.n_parts == 2) {
    if (kHasQuadProducts || quads_in_16_bits(work.largest_weight) >= 2) {
      multiply_byte_block<2, 2>(work, result, stride, is_first);
    } else {
      multiply_byte_block<2, 1>(work, result, stride, is_first);
    }
  } else if (kHasQuadProducts || quads_in_16_bits(work.largest_weight) >= 8) {
    multiply_byte_block<1, 8>(work, result, stride, is_first);
  } else if (quads_in_16_bits(work.largest_weight) >= 4) {
    multiply_byte_block<1, 4>(work, result, stride, is_first);
  } else {
    multiply_byte_block<1, 1>(work, result, stride, is_first);
  }
}

void MultiplyBytesKernel(const MultiplyBytes& work) {
  const auto n_rows = static_cast<std::size_t>(work.n_rows);
  const auto n_columns = static_cast<std::size_t>(work.n_columns);
  if (n_rows == kRows && n_columns == kColumns) {
    multiply_any_bytes(work, work.result, work.result_stride, work.is_first);
    return;
  }
  // At an edge of the result: a whole block is computed elsewhere.
  alignas(64) float whole[kColumns * kRows];
  multiply_any_bytes(work, whole, kRows, true);
  for (std::size_t c = 0; c < n_columns; ++c) {
    float* result = work.result + c * work.result_stride;
    for (std::size_t row = 0; row < n_rows; ++row) {
      result[row] = whole[c * kRows + row] + (work.is_first ? 0 : result[row]);
    }
  }
}

// NOLINTEND(misc-use-internal-linkage)
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slipstream::turbo {

HWY_EXPORT(ByteShapeOfTarget);
HWY_EXPORT(PackByteRows);
HWY_EXPORT(PackByteColumn);
HWY_EXPORT(MultiplyBytesKernel);

ByteShape byte_shape() { return HWY_DYNAMIC_DISPATCH(ByteShapeOfTarget)(); }
void pack_byte_rows(const std::uint8_t* rows, std::int64_t n_inner, int n_parts, std::byte* group) {
  HWY_DYNAMIC_DISPATCH(PackByteRows)(rows, n_inner, n_parts, group);
}
void pack_byte_column(const ByteColumns& column, std::int64_t n_inner, int n_parts,
                      std::int64_t idx, std::byte* columns) {
  HWY_DYNAMIC_DISPATCH(PackByteColumn)(column, n_inner, n_parts, idx, columns);
}
void multiply_bytes(const MultiplyBytes& work) { HWY_DYNAMIC_DISPATCH(MultiplyBytesKernel)(work); }

}  // namespace slipstream::turbo
#endif
