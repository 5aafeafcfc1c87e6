// One zstd frame: bytes that know their own size and carry a checksum (the low half of XXH64).
//
// Fast above all, because the processor has a model to compute: keys and values hardly compress,
// but zeroes shrink to nothing.
//
// Threads: thread-compatible.
// Errors:  kCorrupt for what is no whole frame or has other content than it says; kOutOfMemory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace slipstream {

// The most that a frame of n bytes of content takes.
[[nodiscard]] std::size_t frame_bytes_max(std::size_t n_bytes);

class FrameEncoder {
 public:
  FrameEncoder();

  // Valid until the next call.
  [[nodiscard]] Result<std::span<const std::byte>> encode(std::span<const std::byte> content);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::vector<std::byte> frame_;
};

class FrameDecoder {
 public:
  FrameDecoder();

  // What the frame says, without decoding it: to be checked before memory is taken for it.
  [[nodiscard]] static Result<std::uint64_t> content_bytes(std::span<const std::byte> frame);
  // Fills all of `into`; kCorrupt when the content is shorter or longer.
  [[nodiscard]] Result<void> decode(std::span<const std::byte> frame, std::span<std::byte> into);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

}  // namespace slipstream
