// ImageLimits: what images of a client may take. Images are made pixels by a library written in C, so
// what a file says about itself is checked before (image_file.h).
//
// Threads: immutable.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slipstream {

struct ImageLimits {
  std::size_t images_max = 16;                                 // of one request
  std::size_t file_bytes_max = std::size_t{20} << 20;          // each
  std::uint64_t pixels_max = std::uint64_t{16} << 20;          // each: 4096 x 4096
  std::uint64_t request_pixels_max = std::uint64_t{32} << 20;  // of all images of a request
  std::uint32_t side_max = 16384;                              // pixels
  // What a PNG's data becomes: one with 16 bits for each channel may have fewer pixels.
  std::uint64_t unpacked_bytes_max = std::uint64_t{96} << 20;
  // Of a progressive JPEG: each one visits all pixels, however short it is.
  int jpeg_scans_max = 64;
  // Of all requests that wait or run: what they hold to be computed, or computed again.
  std::uint64_t held_bytes_max = std::uint64_t{1} << 30;
};

inline constexpr ImageLimits kImageLimits{};

}  // namespace slipstream
