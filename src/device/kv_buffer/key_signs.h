// KeySigns: one bit for each channel of a layer's keys, its sign after the rotation, by which a
// query finds the chunks that it needs (attention/chunk_choice.h). They are an eighth of the bytes
// of 4-bit codes with their scales.
//
//   n_streams x n_heads x { signs of a chunk, one chunk after the other | f16 scales of all tokens }
//   signs of a chunk: [channel / 8][token], bit channel % 8; 1 if the number is not negative
//
// The key that signs and scale stand for is scale * (1 or -1) in each channel. The scale is such
// that its product with the key itself is right: sum of squares / sum of magnitudes.
//
// Threads: concurrent reads are safe, and so is writing different rows; clear() and copy_stream()
//          by one thread while no other thread reads or writes.
// Errors:  create: kOutOfMemory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/mapping.h"
#include "base/result.h"
#include "contract/tile.h"

namespace slipstream::turbo {

struct SignShape {
  int head_dim;
  std::int64_t n_heads;
  std::int64_t n_cells;
  std::int64_t n_streams;
};

class KeySigns {
 public:
  [[nodiscard]] static std::size_t n_bytes(const SignShape& shape);
  [[nodiscard]] static Result<KeySigns> create(const SignShape& shape);

  // row = stream * n_cells + cell. Numbers that are not finite count as 0.
  void write(std::int64_t row, std::int64_t head, std::span<const float> rotated);

  [[nodiscard]] const std::uint8_t* signs(std::int64_t stream, std::int64_t head,
                                          std::int64_t chunk) const;
  [[nodiscard]] const std::uint16_t* scales(std::int64_t stream, std::int64_t head,
                                            std::int64_t chunk) const;

  void clear() { memory_.zero(); }
  void copy_stream(std::int64_t from, std::int64_t to);

 private:
  KeySigns(const SignShape& shape, Mapping memory) : shape_(shape), memory_(std::move(memory)) {}
  [[nodiscard]] std::uint8_t* head_start(std::int64_t stream, std::int64_t head) const;
  [[nodiscard]] std::uint8_t* head_scales(std::int64_t stream, std::int64_t head) const;

  SignShape shape_;
  Mapping memory_;
};

}  // namespace slipstream::turbo
