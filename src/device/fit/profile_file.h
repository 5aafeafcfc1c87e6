// The file of a key profile: what was fitted to the keys of each layer of one model.
//
//   magic "SLIPKEYS"  version u32  n_layers u32
//   n_layers times:   layer u32  n_heads u32  head_dim u32  print [32]
//                     n_heads times, f32: mean [head_dim]  directions [head_dim][head_dim]
//                                         variances [head_dim]
//   SHA-256 of all bytes before it
//
// Little-endian, no gaps; docs/formats/key-profile.md.
// Threads: thread-safe.
// Errors:  kCorrupt for bytes that are not such a file, kUnsupported for another version; those of
//          the file system.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/codec/key_fit.h"
#include "device/fit/layer_print.h"

namespace slipstream::turbo {

struct LayerProfile {
  int layer = 0;
  int head_dim = 0;
  LayerPrint print{};
  std::vector<HeadBasis> heads;
};

using KeyProfile = std::vector<LayerProfile>;

[[nodiscard]] std::vector<std::byte> encode_profile(const KeyProfile& profile);
[[nodiscard]] Result<KeyProfile> decode_profile(std::span<const std::byte> bytes);

// Writes the whole file or nothing: it is written under another name first and then renamed.
[[nodiscard]] Result<void> write_profile(const std::string& path, const KeyProfile& profile);
[[nodiscard]] Result<KeyProfile> read_profile(const std::string& path);

}  // namespace slipstream::turbo
