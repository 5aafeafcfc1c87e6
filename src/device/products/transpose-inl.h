// Transposes words of rows, as packing weights needs it. Included once for every instruction set.
//
// Threads: pure functions. Errors: none.
#if defined(SLIPSTREAM_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIPSTREAM_TRANSPOSE_INL_H
#undef SLIPSTREAM_TRANSPOSE_INL_H
#else
#define SLIPSTREAM_TRANSPOSE_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using TransposedWords = hn::CappedTag<std::uint32_t, 16>;

// Four words of row 4 * block, in each block of 128 bits.
HWY_INLINE hn::Vec<TransposedWords> load_blocks(const std::uint32_t* rows, std::size_t stride) {
  const hn::FixedTag<std::uint32_t, 4> d4;
#if HWY_MAX_BYTES >= 64
  const hn::FixedTag<std::uint32_t, 8> d8;
  return hn::Combine(
      TransposedWords(),
      hn::Combine(d8, hn::LoadU(d4, rows + 12 * stride), hn::LoadU(d4, rows + 8 * stride)),
      hn::Combine(d8, hn::LoadU(d4, rows + 4 * stride), hn::LoadU(d4, rows)));
#elif HWY_MAX_BYTES == 32
  return hn::Combine(TransposedWords(), hn::LoadU(d4, rows + 4 * stride), hn::LoadU(d4, rows));
#else
  (void)stride;
  return hn::LoadU(d4, rows);
#endif
}

// to[word][row] = rows[row][word], for four words of as many rows as a vector has words.
HWY_INLINE void transpose_four(const std::uint32_t* rows, std::size_t stride,
                               std::uint32_t* HWY_RESTRICT to, std::size_t to_stride) {
  const TransposedWords dw;
  const hn::Repartition<std::uint64_t, TransposedWords> dd;
  const auto a = load_blocks(rows, stride);
  const auto b = load_blocks(rows + stride, stride);
  const auto c = load_blocks(rows + 2 * stride, stride);
  const auto d = load_blocks(rows + 3 * stride, stride);
  const auto ab_low = hn::BitCast(dd, hn::InterleaveLower(dw, a, b));
  const auto ab_high = hn::BitCast(dd, hn::InterleaveUpper(dw, a, b));
  const auto cd_low = hn::BitCast(dd, hn::InterleaveLower(dw, c, d));
  const auto cd_high = hn::BitCast(dd, hn::InterleaveUpper(dw, c, d));
  hn::StoreU(hn::BitCast(dw, hn::InterleaveLower(dd, ab_low, cd_low)), dw, to);
  hn::StoreU(hn::BitCast(dw, hn::InterleaveUpper(dd, ab_low, cd_low)), dw, to + to_stride);
  hn::StoreU(hn::BitCast(dw, hn::InterleaveLower(dd, ab_high, cd_high)), dw, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(dw, hn::InterleaveUpper(dd, ab_high, cd_high)), dw, to + 3 * to_stride);
}

}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
