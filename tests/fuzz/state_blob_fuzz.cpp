// A saved sequence comes from a disk: whatever it says, nothing outside its bytes is read, and the
// memory it asks for is a small multiple of them.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "engine/state/state_blob.h"
#include "harness.h"

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  using slipstream::StateBlob;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), n_bytes);
  const slipstream::Result<StateBlob> blob = StateBlob::parse(bytes);
  if (!blob) return 0;
  SLIP_CHECK(blob->state_bytes() <= 16 * n_bytes, "it asks for too much memory");
  std::vector<std::byte> state(blob->state_bytes());
  blob->spread(state);
  // Rows as the device asks for them: of sizes of its own, at any place.
  unsigned sum = 0;
  for (std::uint64_t offset = 0; offset < state.size(); ++offset) {
    for (const std::uint32_t row_bytes : {16U, 20U}) {
      for (const std::uint32_t packed_row_bytes : {2U, 5U}) {
        for (const std::uint64_t n_rows : {1U, 4U}) {
          const std::byte* rows = blob->rows({.offset = offset,
                                              .n_rows = n_rows,
                                              .row_bytes = row_bytes,
                                              .packed_row_bytes = packed_row_bytes});
          if (rows == nullptr) continue;
          for (std::uint64_t i = 0; i < n_rows * packed_row_bytes; ++i) {
            sum += std::to_integer<unsigned>(rows[i]);
          }
        }
      }
    }
  }
  if (const std::byte* centres = blob->centres(7, 0, 30); centres != nullptr) {
    sum += std::to_integer<unsigned>(centres[0]) + std::to_integer<unsigned>(centres[29]);
  }
  volatile unsigned keep = sum;
  (void)keep;
  return 0;
}
