// KeySigns: one bit for each channel of a layer's keys, its sign after the rotation, by which a
// query finds the chunks that it needs (attention/chunk_choice.h). They are an eighth of the bytes
// of 4-bit codes with their scales.
//
//   n_streams x n_heads x { signs [channel / 8][token] | scales [token] }
//
// Bit channel % 8 of a byte of signs is 1 if the number is not negative. The planes of eight
// channels are apart, so that a query can read some of them and leave the others alone.
//
// The key that signs and scale stand for is scale * (1 or -1) in each channel. The scale is such
// that its product with the key itself is right: sum of squares / sum of magnitudes. It is the byte
// behind the sign of an f16: five bits of exponent and three of mantissa, an error of at most 1/17,
// which is a fraction of what signs leave open.
//
// Threads: concurrent reads are safe, and so is writing different rows; clear() and copy_stream()
//          by one thread while no other thread reads or writes.
// Errors:  create: kOutOfMemory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/mapping.h"
#include "base/result.h"
#include "contract/tile.h"
#include "device/codec/f16.h"

namespace slipstream::turbo {

struct SignShape {
  int head_dim;
  std::int64_t n_heads;
  std::int64_t n_cells;
  std::int64_t n_streams;
};

constexpr std::uint8_t sign_scale(float scale) {
  constexpr int kLargest = 0xF7;  // before infinity
  return static_cast<std::uint8_t>(std::min((float_to_f16(scale) + 64) >> 7, kLargest));
}
constexpr float from_sign_scale(std::uint8_t scale) {
  return f16_to_float(static_cast<std::uint16_t>(scale << 7));
}

class KeySigns {
 public:
  [[nodiscard]] static std::size_t n_bytes(const SignShape& shape);
  [[nodiscard]] static Result<KeySigns> create(const SignShape& shape);

  // row = stream * n_cells + cell. Numbers that are not finite count as 0.
  void write(std::int64_t row, std::int64_t head, std::span<const float> rotated);

  // The first plane of a chunk's signs. The others lie plane_bytes() apart, the scales behind them.
  [[nodiscard]] const std::uint8_t* signs(std::int64_t stream, std::int64_t head,
                                          std::int64_t chunk) const;
  [[nodiscard]] const std::uint8_t* scales(std::int64_t stream, std::int64_t head,
                                           std::int64_t chunk) const;
  [[nodiscard]] std::size_t plane_bytes() const { return sign_plane_bytes(shape_.n_cells); }

  void clear() { memory_.zero(); }
  void copy_stream(std::int64_t from, std::int64_t to);

 private:
  KeySigns(const SignShape& shape, Mapping memory) : shape_(shape), memory_(std::move(memory)) {}
  [[nodiscard]] std::uint8_t* head_start(std::int64_t stream, std::int64_t head) const;

  SignShape shape_;
  Mapping memory_;
};

}  // namespace slipstream::turbo
