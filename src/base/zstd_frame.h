// One zstd frame: bytes with their size and a checksum (the low half of XXH64).
//
// Threads: thread-compatible.
// Errors:  kCorrupt for an incomplete frame or content that does not match it; kOutOfMemory.
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

// Upper bound of the frame size for n bytes of content.
[[nodiscard]] std::size_t frame_bytes_max(std::size_t n_bytes);

class FrameEncoder {
 public:
  // level: zstd's, from -7 (fast) to 19 (small).
  explicit FrameEncoder(int level);

  // The result is valid until the next call.
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

  // The size that the frame declares, without decoding it. Check it before allocating memory.
  [[nodiscard]] static Result<std::uint64_t> content_bytes(std::span<const std::byte> frame);
  // Fills all of `into`; kCorrupt if the content is shorter or longer.
  [[nodiscard]] Result<void> decode(std::span<const std::byte> frame, std::span<std::byte> into);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

}  // namespace slipstream
