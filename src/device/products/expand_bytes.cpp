// This file is compiled once for every instruction set that Highway knows on this architecture. The
// first call chooses the best one that the machine has.
#include "device/products/expand_bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/products/expand_bytes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/products/weight_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
// NOLINTBEGIN(misc-use-internal-linkage): HWY_EXPORT needs names; clang loses the target in
// namespace {}

using Bytes = hn::CappedTag<std::uint8_t, 32>;
using SixteenBytes = hn::FixedTag<std::uint8_t, 16>;

// What is added to signed weights to make them unsigned.
constexpr int kQ8_0Offset = 128;
constexpr int kQ4_0Offset = 8;
constexpr int kQ6KOffset = 32;
constexpr int kIq4Offset = 127;
constexpr int kMxfp4Offset = 12;
constexpr int kIq2XxsOffset = 43;

struct ByteLevels {
  alignas(16) std::uint8_t of[16];
};

constexpr ByteLevels levels_above(const std::int8_t (&levels)[16], int offset) {
  ByteLevels bytes = {};
  for (int i = 0; i < 16; ++i) bytes.of[i] = static_cast<std::uint8_t>(levels[i] + offset);
  return bytes;
}

HWY_INLINE void write_scale(const ByteRow& row, std::int64_t block, std::size_t part, float scale,
                            float minimum) {
  const std::size_t at =
      static_cast<std::size_t>(block) * row.block_stride + part * row.part_stride;
  row.scales[at] = scale;
  row.minima[at] = minimum;
}

HWY_INLINE void write_signed_scale(const ByteRow& row, std::int64_t block, float scale,
                                   int offset) {
  write_scale(row, block, 0, scale, scale * static_cast<float>(offset));
}

void BytesOfQ8_0(const void* blocks, std::int64_t n, const ByteRow& row) {
  const Bytes db;
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t i = 0; i < n / kBlock; ++i, block += kQ8_0Bytes) {
    for (std::size_t k = 0; k < kBlock; k += hn::Lanes(db)) {
      const auto bytes = hn::Xor(hn::LoadU(db, block + 2 + k), hn::Set(db, std::uint8_t{128}));
      hn::StoreU(bytes, db, row.bytes + i * kBlock + k);
    }
    write_signed_scale(row, i, half_at(block), kQ8_0Offset);
  }
}

// Thirty-two weights: those of the low nibbles come first.
HWY_INLINE void look_up_nibbles(const std::uint8_t* nibbles, const ByteLevels& levels,
                                std::uint8_t* bytes) {
  const SixteenBytes db;
  const auto table = hn::Load(db, levels.of);
  const auto both = hn::LoadU(db, nibbles);
  hn::StoreU(hn::TableLookupBytes(table, hn::And(both, hn::Set(db, std::uint8_t{15}))), db, bytes);
  hn::StoreU(hn::TableLookupBytes(table, hn::ShiftRight<4>(both)), db, bytes + 16);
}

void BytesOfQ4_0(const void* blocks, std::int64_t n, const ByteRow& row) {
  static constexpr ByteLevels kLevels = levels_above(kQ4_0Levels, kQ4_0Offset);
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t i = 0; i < n / kBlock; ++i, block += kQ4_0Bytes) {
    look_up_nibbles(block + 2, kLevels, row.bytes + i * kBlock);
    write_signed_scale(row, i, half_at(block), kQ4_0Offset);
  }
}

void BytesOfIq4Nl(const void* blocks, std::int64_t n, const ByteRow& row) {
  static constexpr ByteLevels kLevels = levels_above(kIq4Levels, kIq4Offset);
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t i = 0; i < n / kBlock; ++i, block += kQ4_0Bytes) {
    look_up_nibbles(block + 2, kLevels, row.bytes + i * kBlock);
    write_signed_scale(row, i, half_at(block), kIq4Offset);
  }
}

void BytesOfIq4Xs(const void* blocks, std::int64_t n, const ByteRow& row) {
  static constexpr ByteLevels kLevels = levels_above(kIq4Levels, kIq4Offset);
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t i = 0; i < n / kBlock; i += 8, block += kIq4XsBytes) {
    for (unsigned part = 0; part < 8; ++part) {
      look_up_nibbles(block + 8 + 16 * std::size_t{part}, kLevels, row.bytes + (i + part) * kBlock);
      write_signed_scale(row, i + part, scale_of_iq4_xs(block, part), kIq4Offset);
    }
  }
}

void BytesOfMxfp4(const void* blocks, std::int64_t n, const ByteRow& row) {
  static constexpr ByteLevels kLevels = levels_above(kMxfp4Levels, kMxfp4Offset);
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t i = 0; i < n / kBlock; ++i, block += kMxfp4Bytes) {
    look_up_nibbles(block + 1, kLevels, row.bytes + i * kBlock);
    write_signed_scale(row, i, mxfp4_scale(block[0]), kMxfp4Offset);
  }
}

// Q4_K, and Q5_K with `fifth_bits`: 256 weights, blocks from `first` on.
HWY_INLINE void bytes_of_q4_q5_k(const std::uint8_t* block, const std::uint8_t* fifth_bits,
                                 const std::uint8_t* nibbles, std::int64_t first,
                                 const ByteRow& row) {
  const Bytes db;
  const float scale = half_at(block);
  const float minimum = half_at(block + 2);
  for (int part = 0; part < 8; ++part) {
    const ScaleAndMinimum of_part = scale_of_q4_k(block + 4, part);
    write_scale(row, first + part, 0, scale * static_cast<float>(of_part.scale),
                minimum * static_cast<float>(of_part.minimum));
  }
  std::uint8_t* bytes = row.bytes + first * kBlock;
  for (unsigned part = 0; part < 8; part += 2, nibbles += kBlock, bytes += 2 * kBlock) {
    for (std::size_t k = 0; k < kBlock; k += hn::Lanes(db)) {
      const auto both = hn::LoadU(db, nibbles + k);
      auto low = hn::And(both, hn::Set(db, std::uint8_t{15}));
      auto high = hn::ShiftRight<4>(both);
      if (fifth_bits != nullptr) {
        const auto bits = hn::LoadU(db, fifth_bits + k);
        const auto fifth = [&](unsigned bit) HWY_ATTR {
          const auto is_set = hn::TestBit(bits, hn::Set(db, static_cast<std::uint8_t>(1U << bit)));
          return hn::IfThenElseZero(is_set, hn::Set(db, std::uint8_t{16}));
        };
        low = hn::Or(low, fifth(part));
        high = hn::Or(high, fifth(part + 1));
      }
      hn::StoreU(low, db, bytes + k);
      hn::StoreU(high, db, bytes + kBlock + k);
    }
  }
}

void BytesOfQ4K(const void* blocks, std::int64_t n, const ByteRow& row) {
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t i = 0; i < n / kBlock; i += 8, block += kQ4KBytes) {
    bytes_of_q4_q5_k(block, nullptr, block + 16, i, row);
  }
}

void BytesOfQ5K(const void* blocks, std::int64_t n, const ByteRow& row) {
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t i = 0; i < n / kBlock; i += 8, block += kQ5KBytes) {
    bytes_of_q4_q5_k(block, block + 16, block + 48, i, row);
  }
}

// Half a block of Q6_K: 128 weights.
HWY_INLINE void bytes_of_half_q6_k(const std::uint8_t* low_bits, const std::uint8_t* high_bits,
                                   std::uint8_t* bytes) {
  const Bytes db;
  const auto nibble = hn::Set(db, std::uint8_t{15});
  const auto two_bits = hn::Set(db, std::uint8_t{48});
  for (std::size_t k = 0; k < kBlock; k += hn::Lanes(db)) {
    const auto low0 = hn::LoadU(db, low_bits + k);
    const auto low1 = hn::LoadU(db, low_bits + kBlock + k);
    const auto high = hn::LoadU(db, high_bits + k);
    const auto store = [&](std::size_t block, auto low, auto high_two) HWY_ATTR {
      hn::StoreU(hn::Or(low, hn::And(high_two, two_bits)), db, bytes + block * kBlock + k);
    };
    store(0, hn::And(low0, nibble), hn::ShiftLeft<4>(high));
    store(1, hn::And(low1, nibble), hn::ShiftLeft<2>(high));
    store(2, hn::ShiftRight<4>(low0), high);
    store(3, hn::ShiftRight<4>(low1), hn::ShiftRight<2>(high));
  }
}

void BytesOfQ6K(const void* blocks, std::int64_t n, const ByteRow& row) {
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t i = 0; i < n / kBlock; i += 8, block += kQ6KBytes) {
    std::uint8_t* bytes = row.bytes + i * kBlock;
    bytes_of_half_q6_k(block, block + 128, bytes);
    bytes_of_half_q6_k(block + 64, block + 160, bytes + 128);
    const float scale = half_at(block + 208);
    for (unsigned part = 0; part < 16; ++part) {
      const auto sixteenth = static_cast<std::int8_t>(block[192 + part]);
      const float part_scale = scale * static_cast<float>(sixteenth);
      write_scale(row, i + part / 2, part % 2, part_scale, part_scale * kQ6KOffset);
    }
  }
}

void BytesOfIq2Xxs(const void* blocks, std::int64_t n, const ByteRow& row) {
  const Bytes db;
  const Iq2XxsTable& table = iq2_xxs_table();
  const auto* block = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t i = 0; i < n / kBlock; i += 8, block += kIq2XxsBytes) {
    for (unsigned part = 0; part < 8; ++part) {
      alignas(32) std::int8_t levels[kBlock];
      levels_of_iq2_xxs(block, part, table, levels);
      std::uint8_t* bytes = row.bytes + (i + part) * kBlock;
      for (std::size_t k = 0; k < kBlock; k += hn::Lanes(db)) {
        const auto level = hn::Load(db, reinterpret_cast<const std::uint8_t*>(levels) + k);
        hn::StoreU(hn::Add(level, hn::Set(db, std::uint8_t{kIq2XxsOffset})), db, bytes + k);
      }
      write_signed_scale(row, i + part, scale_of_iq2_xxs(block, part), kIq2XxsOffset);
    }
  }
}

// NOLINTEND(misc-use-internal-linkage)
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slipstream::turbo {

HWY_EXPORT(BytesOfQ8_0);
HWY_EXPORT(BytesOfQ4_0);
HWY_EXPORT(BytesOfIq4Nl);
HWY_EXPORT(BytesOfIq4Xs);
HWY_EXPORT(BytesOfMxfp4);
HWY_EXPORT(BytesOfQ4K);
HWY_EXPORT(BytesOfQ5K);
HWY_EXPORT(BytesOfQ6K);
HWY_EXPORT(BytesOfIq2Xxs);

ByteWeights byte_weights(ggml_type type) {
  // Before the first choice a pointer would lead to the code that chooses, at every call.
  hwy::ChosenTarget& chosen = hwy::GetChosenTarget();
  if (!chosen.IsInitialized()) chosen.Update(hwy::SupportedTargets());
  const auto weights = [](ByteExpander expand, int largest, int n_parts = 1) {
    return ByteWeights{.expand = expand, .n_parts = n_parts, .largest = largest};
  };
  switch (type) {
    case GGML_TYPE_Q8_0: return weights(HWY_DYNAMIC_POINTER(BytesOfQ8_0), 255);
    case GGML_TYPE_Q4_0: return weights(HWY_DYNAMIC_POINTER(BytesOfQ4_0), 15);
    case GGML_TYPE_IQ4_NL: return weights(HWY_DYNAMIC_POINTER(BytesOfIq4Nl), 240);
    case GGML_TYPE_IQ4_XS: return weights(HWY_DYNAMIC_POINTER(BytesOfIq4Xs), 240);
    case GGML_TYPE_MXFP4: return weights(HWY_DYNAMIC_POINTER(BytesOfMxfp4), 24);
    case GGML_TYPE_Q4_K: return weights(HWY_DYNAMIC_POINTER(BytesOfQ4K), 15);
    case GGML_TYPE_Q5_K: return weights(HWY_DYNAMIC_POINTER(BytesOfQ5K), 31);
    case GGML_TYPE_Q6_K: return weights(HWY_DYNAMIC_POINTER(BytesOfQ6K), 63, 2);
    case GGML_TYPE_IQ2_XXS: return weights(HWY_DYNAMIC_POINTER(BytesOfIq2Xxs), 86);
    default: return {};
  }
}

}  // namespace slipstream::turbo
#endif
