// Packed rows and centres come from a disk too: whatever they are, a cache refuses them or holds
// numbers afterwards, also those rows that were there before.
#include <ggml-cpp.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "device/kv_buffer/cache_tensor.h"
#include "device/kv_buffer/packed_rows.h"
#include "harness.h"

namespace {

using namespace slipstream::turbo;

// Centres first, then rows; both as often as they are asked for.
std::span<const std::byte> input;

const void* find_centres(void* /*user*/, int /*layer*/, int /*side*/, std::size_t n_bytes) {
  return n_bytes <= input.size() ? input.data() : nullptr;
}
const void* find_rows(void* user, const void* /*place*/, std::size_t n_rows,
                      std::size_t /*row_bytes*/, std::size_t packed_row_bytes) {
  const std::size_t start = *static_cast<std::size_t*>(user);
  return start + n_rows * packed_row_bytes <= input.size() ? input.data() + start : nullptr;
}

}  // namespace

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  constexpr std::size_t kHeader = 4;
  if (n_bytes < kHeader) return 0;
  constexpr int kBits[] = {2, 3, 4, 8};
  constexpr int kHeadDims[] = {16, 32, 64, 80};
  const int head_dim = kHeadDims[data[1] % 4];
  const ggml_context_ptr context(
      ggml_init({.mem_size = 4096, .mem_buffer = nullptr, .no_alloc = true}));
  ggml_tensor* tensor = ggml_new_tensor_3d(context.get(), GGML_TYPE_F16, head_dim, 20, 2);
  ggml_set_name(tensor, data[0] % 2 == 0 ? "cache_k_l0" : "cache_v_l0");
  CacheTensor cache(tensor);
  SLIP_CHECK(cache.bind_compressed(kBits[data[0] / 2 % 4], head_dim).has_value(), "no memory");
  // Its centre is open, or taken from these rows.
  const std::size_t n_before = data[0] / 8 % 41;
  const std::vector<ggml_fp16_t> before(n_before * static_cast<std::size_t>(head_dim),
                                        ggml_fp32_to_fp16(1.5F));
  if (n_before > 0) {
    SLIP_CHECK(cache.set(std::as_bytes(std::span(before)), 0).has_value(), "no memory");
  }

  input = {reinterpret_cast<const std::byte*>(data + kHeader), n_bytes - kHeader};
  std::size_t rows_start = 16 + static_cast<std::size_t>(head_dim) * sizeof(float);
  begin_unpacking(&rows_start, find_centres, find_rows);
  const std::size_t row = data[2] % 40U;
  const std::size_t n_rows = std::min<std::size_t>(data[3] % 8U, 40 - row);
  set_packed(cache, nullptr, row * cache.row_bytes(), n_rows * cache.row_bytes());
  (void)end_packed_rows();

  std::vector<float> values(static_cast<std::size_t>(head_dim));
  for (std::int64_t i = 0; i < cache.n_rows(); ++i) {
    cache.read_row(i, values);
    for (const float value : values) SLIP_CHECK(std::isfinite(value), "no number in a cache");
  }
  return 0;
}
