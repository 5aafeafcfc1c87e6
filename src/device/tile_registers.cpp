#include "device/tile_registers.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace slipstream::turbo {

#if defined(__x86_64__)
namespace {

#define SLIP_TILES __attribute__((target("amx-tile")))

bool request_amx() {
  constexpr int kArchReqXcompPerm = 0x1023;
  constexpr int kXfeatureXtiledata = 18;
  return __builtin_cpu_supports("amx-int8") != 0 &&
         syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

SLIP_TILES void configure(const TileConfig& config, unsigned char* saved) {
  _tile_storeconfig(saved);
  _tile_loadconfig(&config);
}

SLIP_TILES void restore_config(const unsigned char* saved) {
  if (saved[0] == 0) {  // no configuration was loaded before
    _tile_release();
  } else {
    _tile_loadconfig(saved);
  }
}

}  // namespace

bool has_amx() {
  static const bool has = request_amx();
  return has;
}

bool has_amx_bf16() { return __builtin_cpu_supports("amx-bf16") != 0 && has_amx(); }

TileScope::TileScope(bool enabled, const TileConfig& config) : enabled_(enabled) {
  if (enabled_) configure(config, saved_);
}

TileScope::~TileScope() {
  if (enabled_) restore_config(saved_);
}

#else  // other architectures have no such registers

bool has_amx() { return false; }
bool has_amx_bf16() { return false; }
TileScope::TileScope(bool /*enabled*/, const TileConfig& /*config*/) : enabled_(false) {}
TileScope::~TileScope() = default;

#endif

}  // namespace slipstream::turbo
