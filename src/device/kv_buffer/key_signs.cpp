#include "device/kv_buffer/key_signs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/codec/codec_kernels.h"
#include "device/codec/f16.h"

namespace slipstream::turbo {
namespace {

constexpr float kF16Max = 65504;

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
         static_cast<std::size_t>(n_chunks(shape_.n_cells)) * chunk_sign_bytes(shape_.head_dim);
}

const std::uint8_t* KeySigns::signs(std::int64_t stream, std::int64_t head,
                                    std::int64_t chunk) const {
  return head_start(stream, head) +
         static_cast<std::size_t>(chunk) * chunk_sign_bytes(shape_.head_dim);
}

const std::uint16_t* KeySigns::scales(std::int64_t stream, std::int64_t head,
                                      std::int64_t chunk) const {
  return reinterpret_cast<const std::uint16_t*>(head_scales(stream, head)) + chunk * kChunkTokens;
}

void KeySigns::write(std::int64_t row, std::int64_t head, std::span<const float> rotated) {
  const std::int64_t stream = row / shape_.n_cells;
  const std::int64_t cell = row % shape_.n_cells;
  std::uint8_t* first =
      head_start(stream, head) +
      static_cast<std::size_t>(cell / kChunkTokens) * chunk_sign_bytes(shape_.head_dim) +
      static_cast<std::size_t>(cell % kChunkTokens);
  const std::uint16_t scale =
      float_to_f16(std::min(put_signs_fast(rotated, first, kChunkTokens), kF16Max));
  std::memcpy(head_scales(stream, head) + static_cast<std::size_t>(cell) * sizeof(scale), &scale,
              sizeof(scale));
}

void KeySigns::copy_stream(std::int64_t from, std::int64_t to) {
  std::memcpy(
      head_start(to, 0), head_start(from, 0),
      sign_bytes(shape_.head_dim, shape_.n_cells) * static_cast<std::size_t>(shape_.n_heads));
}

}  // namespace slipstream::turbo
