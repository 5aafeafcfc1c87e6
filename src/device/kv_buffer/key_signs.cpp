#include "device/kv_buffer/key_signs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "device/codec/f16.h"

namespace slipstream::turbo {
namespace {

constexpr std::size_t kGroupBytes = 64;    // 16 slots of one word
constexpr std::size_t kWordChannels = 32;  // of a plane of 1 bit
constexpr float kF16Max = 65504;

// The word of up to 32 channels: channel 4k + j in byte j, bit k.
std::uint32_t sign_word(std::span<const float> x) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint32_t bit = x[i] >= 0 ? 1 : 0;  // NaN counts as negative
    word |= bit << (i % 4 * 8 + i / 4);
  }
  return word;
}

std::uint16_t sign_scale(std::span<const float> x) {
  float squares = 0;
  float magnitudes = 0;
  for (const float value : x) {
    const float finite = std::isfinite(value) ? value : 0.0F;
    squares += finite * finite;
    magnitudes += std::abs(finite);
  }
  if (magnitudes == 0) return 0;
  return float_to_f16(std::min(squares / magnitudes, kF16Max));
}

}  // namespace

std::size_t KeySigns::n_bytes(const SignShape& shape) {
  return sign_bytes(shape.head_dim, shape.n_cells) *
         static_cast<std::size_t>(shape.n_heads * shape.n_streams);
}

Result<KeySigns> KeySigns::create(const SignShape& shape) {
  Result<Mapping> memory = Mapping::anonymous(n_bytes(shape));
  if (!memory) return std::unexpected(std::move(memory.error()));
  return KeySigns(shape, std::move(*memory));
}

std::uint8_t* KeySigns::head_start(std::int64_t stream, std::int64_t head) const {
  // The mapped memory is not part of this object's value: const readers share it.
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(memory_.bytes().data());
  return const_cast<std::uint8_t*>(bytes) +
         sign_bytes(shape_.head_dim, shape_.n_cells) *
             static_cast<std::size_t>(stream * shape_.n_heads + head);
}

std::uint8_t* KeySigns::head_scales(std::int64_t stream, std::int64_t head) const {
  return head_start(stream, head) +
         static_cast<std::size_t>(n_tiles(shape_.n_cells)) * plane_bytes(1, shape_.head_dim);
}

const std::uint8_t* KeySigns::signs(std::int64_t stream, std::int64_t head,
                                    std::int64_t chunk) const {
  return head_start(stream, head) +
         static_cast<std::size_t>(chunk * kChunkTiles) * plane_bytes(1, shape_.head_dim);
}

const std::uint16_t* KeySigns::scales(std::int64_t stream, std::int64_t head,
                                      std::int64_t chunk) const {
  return reinterpret_cast<const std::uint16_t*>(head_scales(stream, head)) + chunk * kChunkTokens;
}

void KeySigns::write(std::int64_t row, std::int64_t head, std::span<const float> rotated) {
  const std::int64_t stream = row / shape_.n_cells;
  const std::int64_t cell = row % shape_.n_cells;
  const auto tile = static_cast<std::size_t>(cell / kTileTokens);
  const auto token = static_cast<std::size_t>(cell % kTileTokens);
  std::uint8_t* word = head_start(stream, head) + tile * plane_bytes(1, shape_.head_dim) +
                       token * sizeof(std::uint32_t);
  for (std::size_t i = 0; i < rotated.size(); i += kWordChannels, word += kGroupBytes) {
    const std::uint32_t bits =
        sign_word(rotated.subspan(i, std::min(kWordChannels, rotated.size() - i)));
    std::memcpy(word, &bits, sizeof(bits));
  }
  const std::uint16_t scale = sign_scale(rotated);
  std::memcpy(head_scales(stream, head) + static_cast<std::size_t>(cell) * sizeof(scale), &scale,
              sizeof(scale));
}

void KeySigns::copy_stream(std::int64_t from, std::int64_t to) {
  std::memcpy(
      head_start(to, 0), head_start(from, 0),
      sign_bytes(shape_.head_dim, shape_.n_cells) * static_cast<std::size_t>(shape_.n_heads));
}

}  // namespace slipstream::turbo
