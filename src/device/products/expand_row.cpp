// This file is compiled once for every instruction set that Highway knows on this architecture. The
// first call chooses the best one that the machine has.
#include "device/products/expand_row.h"

#include <cstddef>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/products/expand_row.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/products/weight_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
// NOLINTBEGIN(misc-use-internal-linkage): HWY_EXPORT needs names; clang loses the target in
// namespace {}

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Words = hn::Rebind<std::int32_t, Floats>;
using Bytes = hn::Rebind<std::uint8_t, Floats>;  // as many as floats
using SixteenBytes = hn::FixedTag<std::int8_t, 16>;

HWY_INLINE auto to_floats(hn::Vec<Words> words) { return hn::ConvertTo(Floats(), words); }

// Bytes at `from`, as many as a vector has floats.
HWY_INLINE auto load_words(const std::uint8_t* from) {
  return hn::PromoteTo(Words(), hn::LoadU(Bytes(), from));
}

// floats[i] = scale * bytes[i], for sixteen.
HWY_INLINE void store_scaled(hn::Vec<SixteenBytes> bytes, float scale, float* HWY_RESTRICT floats) {
  const Floats df;
  const auto factor = hn::Set(df, scale);
#if HWY_MAX_BYTES >= 64
  hn::StoreU(hn::Mul(to_floats(hn::PromoteTo(Words(), bytes)), factor), df, floats);
#else
  alignas(16) std::int8_t stored[16];
  hn::Store(bytes, SixteenBytes(), stored);
  for (std::size_t i = 0; i < 16; i += hn::Lanes(df)) {
    const hn::Rebind<std::int8_t, Floats> db;
    const auto words = hn::PromoteTo(Words(), hn::LoadU(db, stored + i));
    hn::StoreU(hn::Mul(to_floats(words), factor), df, floats + i);
  }
#endif
}

// Thirty-two weights: those of the low nibbles come first.
HWY_INLINE void expand_nibbles(const std::uint8_t* nibbles, hn::Vec<SixteenBytes> levels,
                               float scale, float* HWY_RESTRICT floats) {
  const hn::FixedTag<std::uint8_t, 16> du;
  const SixteenBytes db;
  const auto both = hn::LoadU(du, nibbles);
  const auto low = hn::BitCast(db, hn::And(both, hn::Set(du, std::uint8_t{15})));
  const auto high = hn::BitCast(db, hn::ShiftRight<4>(both));
  store_scaled(hn::TableLookupBytes(levels, low), scale, floats);
  store_scaled(hn::TableLookupBytes(levels, high), scale, floats + 16);
}

void ExpandF32(const void* blocks, float* floats, std::int64_t n) {
  std::memcpy(floats, blocks, static_cast<std::size_t>(n) * sizeof(float));
}

// f16 and bf16.
template <class Half>
HWY_INLINE void expand_halfs(const void* blocks, float* floats, std::int64_t n) {
  const Floats df;
  const hn::Rebind<Half, Floats> dh;
  const auto* halfs = static_cast<const Half*>(blocks);
  const auto count = static_cast<std::size_t>(n);
  std::size_t i = 0;
  for (; i + hn::Lanes(df) <= count; i += hn::Lanes(df)) {
    hn::StoreU(hn::PromoteTo(df, hn::LoadU(dh, halfs + i)), df, floats + i);
  }
  if (i < count) {
    hn::StoreN(hn::PromoteTo(df, hn::LoadN(dh, halfs + i, count - i)), df, floats + i, count - i);
  }
}

void ExpandF16(const void* blocks, float* floats, std::int64_t n) {
  expand_halfs<hwy::float16_t>(blocks, floats, n);
}

void ExpandBf16(const void* blocks, float* floats, std::int64_t n) {
  expand_halfs<hwy::bfloat16_t>(blocks, floats, n);
}

void ExpandQ8_0(const void* blocks, float* floats, std::int64_t n) {
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  const SixteenBytes db;
  for (std::int64_t i = 0; i < n; i += kBlock, block += kQ8_0Bytes) {
    const float scale = half_at(block);
    const auto* bytes = reinterpret_cast<const std::int8_t*>(block + 2);
    store_scaled(hn::LoadU(db, bytes), scale, floats + i);
    store_scaled(hn::LoadU(db, bytes + 16), scale, floats + i + 16);
  }
}

void ExpandQ4_0(const void* blocks, float* floats, std::int64_t n) {
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  const auto levels = hn::Load(SixteenBytes(), kQ4_0Levels);
  for (std::int64_t i = 0; i < n; i += kBlock, block += kQ4_0Bytes) {
    expand_nibbles(block + 2, levels, half_at(block), floats + i);
  }
}

void ExpandIq4Nl(const void* blocks, float* floats, std::int64_t n) {
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  const auto levels = hn::Load(SixteenBytes(), kIq4Levels);
  for (std::int64_t i = 0; i < n; i += kBlock, block += kQ4_0Bytes) {
    expand_nibbles(block + 2, levels, half_at(block), floats + i);
  }
}

void ExpandMxfp4(const void* blocks, float* floats, std::int64_t n) {
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  const auto levels = hn::Load(SixteenBytes(), kMxfp4Levels);
  for (std::int64_t i = 0; i < n; i += kBlock, block += kMxfp4Bytes) {
    expand_nibbles(block + 1, levels, mxfp4_scale(block[0]), floats + i);
  }
}

void ExpandIq4Xs(const void* blocks, float* floats, std::int64_t n) {
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  const auto levels = hn::Load(SixteenBytes(), kIq4Levels);
  for (std::int64_t i = 0; i < n; i += kSuperBlock, block += kIq4XsBytes) {
    for (unsigned part = 0; part < 8; ++part) {
      expand_nibbles(block + 8 + 16 * std::size_t{part}, levels, scale_of_iq4_xs(block, part),
                     floats + i + kBlock * part);
    }
  }
}

// Q4_K, and Q5_K with `fifth_bits`.
HWY_INLINE void expand_q4_q5_k(const std::uint8_t* block, const std::uint8_t* fifth_bits,
                               const std::uint8_t* nibbles, float* HWY_RESTRICT floats) {
  const Floats df;
  const Words dw;
  const float scale = half_at(block);
  const float minimum = half_at(block + 2);
  for (int part = 0; part < 8; part += 2) {
    const ScaleAndMinimum low = scale_of_q4_k(block + 4, part);
    const ScaleAndMinimum high = scale_of_q4_k(block + 4, part + 1);
    const auto low_scale = hn::Set(df, scale * static_cast<float>(low.scale));
    const auto low_minimum = hn::Set(df, minimum * static_cast<float>(low.minimum));
    const auto high_scale = hn::Set(df, scale * static_cast<float>(high.scale));
    const auto high_minimum = hn::Set(df, minimum * static_cast<float>(high.minimum));
    for (std::size_t i = 0; i < kBlock; i += hn::Lanes(df)) {
      const auto both = load_words(nibbles + i);
      auto low_words = hn::And(both, hn::Set(dw, 15));
      auto high_words = hn::ShiftRight<4>(both);
      if (fifth_bits != nullptr) {
        // Bits `part` and `part + 1` of the byte become bit 4 of the words.
        const auto bits = hn::ShiftRightSame(load_words(fifth_bits + i), part);
        low_words = hn::Or(low_words, hn::ShiftLeft<4>(hn::And(bits, hn::Set(dw, 1))));
        high_words = hn::Or(high_words, hn::ShiftLeft<3>(hn::And(bits, hn::Set(dw, 2))));
      }
      hn::StoreU(hn::MulSub(to_floats(low_words), low_scale, low_minimum), df, floats + i);
      hn::StoreU(hn::MulSub(to_floats(high_words), high_scale, high_minimum), df,
                 floats + kBlock + i);
    }
    nibbles += kBlock;
    floats += 2 * kBlock;
  }
}

void ExpandQ4K(const void* blocks, float* floats, std::int64_t n) {
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t i = 0; i < n; i += kSuperBlock, block += kQ4KBytes) {
    expand_q4_q5_k(block, nullptr, block + 16, floats + i);
  }
}

void ExpandQ5K(const void* blocks, float* floats, std::int64_t n) {
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t i = 0; i < n; i += kSuperBlock, block += kQ5KBytes) {
    expand_q4_q5_k(block, block + 16, block + 48, floats + i);
  }
}

// Half a block of Q6_K: 128 weights.
HWY_INLINE void expand_half_q6_k(const std::uint8_t* low_bits, const std::uint8_t* high_bits,
                                 const std::int8_t* scales, float scale,
                                 float* HWY_RESTRICT floats) {
  const Floats df;
  const Words dw;
  for (std::size_t i = 0; i < kBlock; i += hn::Lanes(df)) {
    const auto low0 = load_words(low_bits + i);
    const auto low1 = load_words(low_bits + kBlock + i);
    const auto high = load_words(high_bits + i);
    const auto store = [&](std::size_t part, auto low, auto high_two) HWY_ATTR {
      const auto words = hn::Sub(hn::Or(low, high_two), hn::Set(dw, 32));
      const std::int8_t sixteenth = scales[i / 16 + 2 * part];
      const float part_scale = scale * static_cast<float>(sixteenth);
      hn::StoreU(hn::Mul(to_floats(words), hn::Set(df, part_scale)), df,
                 floats + part * kBlock + i);
    };
    const auto nibble = hn::Set(dw, 15);
    const auto two_bits = hn::Set(dw, 48);
    store(0, hn::And(low0, nibble), hn::And(hn::ShiftLeft<4>(high), two_bits));
    store(1, hn::And(low1, nibble), hn::And(hn::ShiftLeft<2>(high), two_bits));
    store(2, hn::ShiftRight<4>(low0), hn::And(high, two_bits));
    store(3, hn::ShiftRight<4>(low1), hn::And(hn::ShiftRight<2>(high), two_bits));
  }
}

void ExpandQ6K(const void* blocks, float* floats, std::int64_t n) {
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t i = 0; i < n; i += kSuperBlock, block += kQ6KBytes) {
    const float scale = half_at(block + 208);
    const auto* scales = reinterpret_cast<const std::int8_t*>(block + 192);
    expand_half_q6_k(block, block + 128, scales, scale, floats + i);
    expand_half_q6_k(block + 64, block + 160, scales + 8, scale, floats + i + 128);
  }
}

void ExpandIq2Xxs(const void* blocks, float* floats, std::int64_t n) {
  const SixteenBytes db;
  const Iq2XxsTable& table = iq2_xxs_table();
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t i = 0; i < n; i += kSuperBlock, block += kIq2XxsBytes) {
    for (unsigned part = 0; part < 8; ++part) {
      alignas(32) std::int8_t levels[kBlock];
      levels_of_iq2_xxs(block, part, table, levels);
      const float scale = scale_of_iq2_xxs(block, part);
      float* to = floats + i + kBlock * part;
      store_scaled(hn::Load(db, levels), scale, to);
      store_scaled(hn::Load(db, levels + 16), scale, to + 16);
    }
  }
}

// NOLINTEND(misc-use-internal-linkage)
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slipstream::turbo {

HWY_EXPORT(ExpandF32);
HWY_EXPORT(ExpandF16);
HWY_EXPORT(ExpandBf16);
HWY_EXPORT(ExpandQ8_0);
HWY_EXPORT(ExpandQ4_0);
HWY_EXPORT(ExpandIq4Nl);
HWY_EXPORT(ExpandMxfp4);
HWY_EXPORT(ExpandIq4Xs);
HWY_EXPORT(ExpandQ4K);
HWY_EXPORT(ExpandQ5K);
HWY_EXPORT(ExpandQ6K);
HWY_EXPORT(ExpandIq2Xxs);

RowExpander row_expander(ggml_type type) {
  // Before the first choice a pointer would lead to the code that chooses, at every call.
  hwy::ChosenTarget& chosen = hwy::GetChosenTarget();
  if (!chosen.IsInitialized()) chosen.Update(hwy::SupportedTargets());
  switch (type) {
    case GGML_TYPE_F32: return HWY_DYNAMIC_POINTER(ExpandF32);
    case GGML_TYPE_F16: return HWY_DYNAMIC_POINTER(ExpandF16);
    case GGML_TYPE_BF16: return HWY_DYNAMIC_POINTER(ExpandBf16);
    case GGML_TYPE_Q8_0: return HWY_DYNAMIC_POINTER(ExpandQ8_0);
    case GGML_TYPE_Q4_0: return HWY_DYNAMIC_POINTER(ExpandQ4_0);
    case GGML_TYPE_IQ4_NL: return HWY_DYNAMIC_POINTER(ExpandIq4Nl);
    case GGML_TYPE_MXFP4: return HWY_DYNAMIC_POINTER(ExpandMxfp4);
    case GGML_TYPE_IQ4_XS: return HWY_DYNAMIC_POINTER(ExpandIq4Xs);
    case GGML_TYPE_Q4_K: return HWY_DYNAMIC_POINTER(ExpandQ4K);
    case GGML_TYPE_Q5_K: return HWY_DYNAMIC_POINTER(ExpandQ5K);
    case GGML_TYPE_Q6_K: return HWY_DYNAMIC_POINTER(ExpandQ6K);
    case GGML_TYPE_IQ2_XXS: return HWY_DYNAMIC_POINTER(ExpandIq2Xxs);
    default: return ggml_get_type_traits(type)->to_float;
  }
}

}  // namespace slipstream::turbo
#endif
