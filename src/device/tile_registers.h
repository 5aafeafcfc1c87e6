// The tile registers of AMX: whether they can be used, and a scope that configures them.
//
// Threads: thread-safe; each thread has its own tile registers. Errors: none.
#pragma once

#include <cstdint>

namespace slipstream::turbo {

// Whether this machine has AMX for bytes and the operating system lets this process use it.
[[nodiscard]] bool has_amx();
// The same for bf16.
[[nodiscard]] bool has_amx_bf16();

// What LDTILECFG reads. A register with 0 bytes in a row is not used.
struct TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t n_rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Configures the thread's tile registers during its lifetime. ggml's own AMX kernels configure a
// thread only once, so the destructor restores the configuration it found.
class TileScope {
 public:
  // Not enabled: does nothing.
  TileScope(bool enabled, const TileConfig& config);
  ~TileScope();
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

 private:
  bool enabled_;
  alignas(64) unsigned char saved_[64] = {};
};

}  // namespace slipstream::turbo
