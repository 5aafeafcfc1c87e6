// A state that is restored may hold anything: whatever bytes are written into a compressed cache,
// at whatever place, nothing is touched outside, reading it back works, and what was read can be
// restored once more without change.
#include <ggml-cpp.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "device/kv_buffer/cache_tensor.h"
#include "harness.h"

namespace {

using slipstream::turbo::CacheTensor;

std::vector<std::byte> read_all(CacheTensor& cache) {
  std::vector<std::byte> rows(cache.row_bytes() * static_cast<std::size_t>(cache.n_rows()));
  SLIP_CHECK(cache.get(rows, 0).has_value(), "a cache in memory cannot be read");
  return rows;
}

}  // namespace

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  constexpr std::size_t kHeader = 4;
  if (n_bytes < kHeader) return 0;
  constexpr int kBits[] = {2, 3, 4, 8};
  constexpr int kHeadDims[] = {64, 80, 96, 128};
  const int head_dim = kHeadDims[data[1] % 4];

  const ggml_context_ptr context(
      ggml_init({.mem_size = 4096, .mem_buffer = nullptr, .no_alloc = true}));
  ggml_tensor* tensor = ggml_new_tensor_3d(context.get(), GGML_TYPE_F16, head_dim * 2, 20, 2);
  ggml_set_name(tensor, data[0] % 2 == 0 ? "cache_k_l0" : "cache_v_l0");
  CacheTensor cache(tensor);
  SLIP_CHECK(cache.bind_compressed(kBits[data[0] / 2 % 4], head_dim).has_value(), "no memory");

  const std::size_t total = ggml_nbytes(tensor);
  const std::size_t offset = (data[2] * 256U + data[3]) % total;
  const std::size_t size = std::min(n_bytes - kHeader, total - offset);
  const auto* bytes = reinterpret_cast<const std::byte*>(data + kHeader);
  SLIP_CHECK(cache.set({bytes, size}, offset).has_value(), "no memory");

  const std::vector<std::byte> once = read_all(cache);
  for (std::size_t i = 0; i < once.size(); i += sizeof(ggml_fp16_t)) {
    ggml_fp16_t half = 0;
    std::memcpy(&half, once.data() + i, sizeof(half));
    const float value = ggml_fp16_to_fp32(half);
    SLIP_CHECK(value == value, "a NaN came out of a cache");
  }
  SLIP_CHECK(cache.set(once, 0).has_value(), "no memory");
  return 0;
}
