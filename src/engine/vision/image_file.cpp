#include "engine/vision/image_file.h"

#include <algorithm>
#include <array>
#include <boost/beast/zlib/inflate_stream.hpp>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/format.h"

namespace slipstream {
namespace {

std::uint32_t byte_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<std::uint32_t>(bytes[at]);
}

std::uint32_t big_endian_16(std::span<const std::byte> bytes, std::size_t at) {
  return byte_at(bytes, at) << 8U | byte_at(bytes, at + 1);
}

std::uint32_t big_endian_32(std::span<const std::byte> bytes, std::size_t at) {
  return big_endian_16(bytes, at) << 16U | big_endian_16(bytes, at + 2);
}

bool begins_with_bytes(std::span<const std::byte> bytes, std::string_view expected) {
  return bytes.size() >= expected.size() &&
         std::memcmp(bytes.data(), expected.data(), expected.size()) == 0;
}

std::unexpected<Error> damaged(std::string_view format, std::string_view why) {
  return fail(Code::kInvalidArgument, format_text("the {} file is damaged: {}", format, why));
}

Result<void> check_size_of(const ImageSize& size, const ImageLimits& limits) {
  if (size.width == 0 || size.height == 0) {
    return fail(Code::kInvalidArgument, "the image has no pixels");
  }
  if (size.width > limits.side_max || size.height > limits.side_max ||
      size.n_pixels() > limits.pixels_max) {
    return fail(Code::kInvalidArgument,
                format_text("an image of {} x {} pixels is larger than the {} pixels allowed, of "
                            "which at most {} in a row: make it smaller",
                            size.width, size.height, limits.pixels_max, limits.side_max));
  }
  return {};
}

// --- PNG

struct PngHead {
  ImageSize size;
  std::uint32_t bits_per_pixel;
  bool is_interlaced;

  // Of rows, each with the byte that says how it is filtered.
  [[nodiscard]] std::uint64_t unpacked_bytes() const {
    const auto rows = [this](std::uint64_t width, std::uint64_t height) {
      return width == 0 ? 0 : height * (1 + (width * bits_per_pixel + 7) / 8);
    };
    if (!is_interlaced) return rows(size.width, size.height);
    struct Pass {
      std::uint32_t x, y, dx, dy;
    };
    constexpr std::array<Pass, 7> kPasses = {{{0, 0, 8, 8},
                                              {4, 0, 8, 8},
                                              {0, 4, 4, 8},
                                              {2, 0, 4, 4},
                                              {0, 2, 2, 4},
                                              {1, 0, 2, 2},
                                              {0, 1, 1, 2}}};
    std::uint64_t n = 0;
    for (const Pass& pass : kPasses) {
      n += rows((size.width + pass.dx - 1 - pass.x) / pass.dx,
                (size.height + pass.dy - 1 - pass.y) / pass.dy);
    }
    return n;
  }
};

Result<PngHead> read_png_head(std::span<const std::byte> data) {
  constexpr std::size_t kHeadBytes = 13;
  if (data.size() != kHeadBytes) return damaged("PNG", "its head has another length");
  constexpr std::array<std::uint32_t, 7> kChannels = {1, 0, 3, 1, 2, 0, 4};  // by type of colour
  const std::uint32_t depth = byte_at(data, 8);
  const std::uint32_t colour = byte_at(data, 9);
  const bool is_depth = depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
  if (!is_depth || colour >= kChannels.size() || kChannels[colour] == 0 || byte_at(data, 12) > 1) {
    return damaged("PNG", "its head has values that no PNG has");
  }
  return PngHead{.size = {.width = big_endian_32(data, 0), .height = big_endian_32(data, 4)},
                 .bits_per_pixel = depth * kChannels[colour],
                 .is_interlaced = byte_at(data, 12) == 1};
}

// Counts what the data unpacks to, in a buffer that is used again and again. What it cannot unpack is
// refused: a library that is less strict could go on.
class UnpackedBytes {
 public:
  explicit UnpackedBytes(std::uint64_t n_max) : n_max_(n_max) {}

  Result<void> add(std::span<const std::byte> packed) {
    if (has_ended_) return {};
    // zlib's two bytes before the stream.
    const std::size_t n_skipped = std::min(n_head_left_, packed.size());
    n_head_left_ -= n_skipped;
    packed = packed.subspan(n_skipped);
    boost::beast::zlib::z_params params{};
    params.next_in = packed.data();
    params.avail_in = packed.size();
    while (params.avail_in > 0) {
      params.next_out = buffer_.data();
      params.avail_out = buffer_.size();
      boost::system::error_code error;
      stream_.write(params, boost::beast::zlib::Flush::sync, error);
      n_ += buffer_.size() - params.avail_out;
      if (n_ > n_max_) return damaged("PNG", "it unpacks to more than its size says");
      has_ended_ = error == boost::beast::zlib::error::end_of_stream;
      if (has_ended_ || error == boost::beast::zlib::error::need_buffers) return {};
      if (error) return damaged("PNG", "its data cannot be unpacked");
    }
    return {};
  }

 private:
  const std::uint64_t n_max_;
  std::uint64_t n_ = 0;
  bool has_ended_ = false;
  std::size_t n_head_left_ = 2;
  boost::beast::zlib::inflate_stream stream_;
  std::array<char, std::size_t{64} << 10> buffer_;
};

constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n";

Result<ImageSize> check_png(std::span<const std::byte> file, const ImageLimits& limits) {
  constexpr std::size_t kAround = 12;  // length, type and checksum
  std::optional<PngHead> head;
  std::optional<UnpackedBytes> unpacked;
  for (std::size_t at = kPngSignature.size(); file.size() - at >= kAround;) {
    const std::size_t n = big_endian_32(file, at);
    if (n > file.size() - at - kAround) return damaged("PNG", "it ends too early");
    const auto type = file.subspan(at + 4, 4);
    const auto data = file.subspan(at + 8, n);
    at += kAround + n;
    if (!head || !unpacked) {
      if (!begins_with_bytes(type, "IHDR")) return damaged("PNG", "it does not begin with a head");
      const Result<PngHead> read = read_png_head(data);
      if (!read) return std::unexpected(read.error());
      if (const auto fits = check_size_of(read->size, limits); !fits) {
        return std::unexpected(fits.error());
      }
      if (read->unpacked_bytes() > limits.unpacked_bytes_max) {
        return fail(Code::kInvalidArgument,
                    format_text("a PNG of {} bytes unpacked is larger than the {} allowed: make it "
                                "smaller, or store 8 bits for each channel",
                                read->unpacked_bytes(), limits.unpacked_bytes_max));
      }
      head = *read;
      unpacked.emplace(head->unpacked_bytes());
    } else if (begins_with_bytes(type, "IDAT")) {
      if (const auto added = unpacked->add(data); !added) return std::unexpected(added.error());
    } else if (begins_with_bytes(type, "IEND")) {
      return head->size;
    } else if (begins_with_bytes(type, "IHDR")) {
      return damaged("PNG", "it has two heads");
    } else if (!begins_with_bytes(type, "PLTE") && (byte_at(type, 0) & 0x20U) == 0) {
      // Whoever does not know it may not read the file, says the standard.
      return damaged("PNG", "it has a part that no standard knows");
    }
  }
  return damaged("PNG", "it has no end");
}

// --- JPEG

// Frames of these kinds are read; the others are lossless, hierarchical or arithmetically coded.
bool is_frame(std::uint32_t marker) { return marker >= 0xC0 && marker <= 0xC2; }

bool has_length(std::uint32_t marker) {
  const bool stands_alone = marker == 0x01 || (marker >= 0xD0 && marker <= 0xD9);
  return !stands_alone;
}

constexpr std::string_view kJpegSignature = "\xFF\xD8\xFF";

Result<ImageSize> check_jpeg(std::span<const std::byte> file, const ImageLimits& limits) {
  constexpr std::uint32_t kStartOfScan = 0xDA;
  constexpr std::uint32_t kEnd = 0xD9;
  std::optional<ImageSize> size;
  int n_scans = 0;
  for (std::size_t at = 2; at + 1 < file.size();) {
    // Between markers there are a scan's bytes, in which 0xFF is followed by 0.
    if (byte_at(file, at) != 0xFF || byte_at(file, at + 1) == 0 || byte_at(file, at + 1) == 0xFF) {
      ++at;
      continue;
    }
    const std::uint32_t marker = byte_at(file, at + 1);
    at += 2;
    if (marker == kEnd) break;
    if (!has_length(marker)) continue;
    if (file.size() - at < 2) return damaged("JPEG", "it ends too early");
    const std::size_t n = big_endian_16(file, at);
    if (n < 2 || n > file.size() - at) return damaged("JPEG", "it ends too early");
    if (is_frame(marker)) {
      constexpr std::size_t kFrameBytes = 8;
      if (size) return damaged("JPEG", "it has two frames");
      if (n < kFrameBytes) return damaged("JPEG", "its frame has no size");
      size = ImageSize{.width = big_endian_16(file, at + 5), .height = big_endian_16(file, at + 3)};
      if (const auto fits = check_size_of(*size, limits); !fits) {
        return std::unexpected(fits.error());
      }
    } else if (marker == kStartOfScan && ++n_scans > limits.jpeg_scans_max) {
      return fail(Code::kInvalidArgument,
                  format_text("a JPEG with more than {} scans takes too long: store it again",
                              limits.jpeg_scans_max));
    }
    at += n;
  }
  if (!size) return damaged("JPEG", "it has no frame that is known: baseline or progressive");
  return *size;
}

}  // namespace

Result<ImageSize> check_image_file(std::span<const std::byte> file, const ImageLimits& limits) {
  if (file.size() > limits.file_bytes_max) {
    return fail(Code::kInvalidArgument,
                format_text("an image of {} bytes is larger than the {} allowed: make it smaller",
                            file.size(), limits.file_bytes_max));
  }
  if (begins_with_bytes(file, kPngSignature)) return check_png(file, limits);
  if (begins_with_bytes(file, kJpegSignature)) return check_jpeg(file, limits);
  return fail(Code::kInvalidArgument, "only PNG and JPEG files are read: store the image as one");
}

}  // namespace slipstream
