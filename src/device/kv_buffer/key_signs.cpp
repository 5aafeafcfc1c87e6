#include "device/kv_buffer/key_signs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/codec/codec_kernels.h"

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

const std::uint8_t* KeySigns::signs(std::int64_t stream, std::int64_t head,
                                    std::int64_t chunk) const {
  return head_start(stream, head) + chunk * kChunkTokens;
}

const std::uint8_t* KeySigns::scales(std::int64_t stream, std::int64_t head,
                                     std::int64_t chunk) const {
  const auto n_planes = static_cast<std::size_t>(n_sign_planes(shape_.head_dim));
  return signs(stream, head, chunk) + n_planes * plane_bytes();
}

void KeySigns::write(std::int64_t row, std::int64_t head, std::span<const float> rotated) {
  std::uint8_t* token = head_start(row / shape_.n_cells, head) + row % shape_.n_cells;
  const float scale = put_signs_fast(rotated, token, plane_bytes());
  token[rotated.size() / 8 * plane_bytes()] = sign_scale(std::min(scale, kF16Max));
}

void KeySigns::copy_stream(std::int64_t from, std::int64_t to) {
  std::memcpy(
      head_start(to, 0), head_start(from, 0),
      sign_bytes(shape_.head_dim, shape_.n_cells) * static_cast<std::size_t>(shape_.n_heads));
}

}  // namespace slipstream::turbo
