// check_image_file(): what a PNG or JPEG file says about itself, before anybody allocates its pixels.
//
// Libraries believe a file: its size in pixels, how much its data unpacks to, how many scans there are.
// Here each of them is read, or counted in a buffer of fixed size, and compared with a limit.
//
// Threads: thread-safe. Errors: kInvalidArgument that says what is wrong and what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "engine/vision/vision_limits.h"

namespace slipstream {

struct ImageSize {
  std::uint32_t width;
  std::uint32_t height;

  [[nodiscard]] std::uint64_t n_pixels() const { return std::uint64_t{width} * height; }
};

[[nodiscard]] Result<ImageSize> check_image_file(std::span<const std::byte> file,
                                                 const ImageLimits& limits = kImageLimits);

}  // namespace slipstream
