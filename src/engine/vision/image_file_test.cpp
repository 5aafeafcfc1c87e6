#include "engine/vision/image_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace slipstream {
namespace {

std::string big_endian(std::uint32_t value, int n_bytes) {
  std::string text;
  for (int i = n_bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string png_part(const std::string& type, const std::string& data) {
  return big_endian(static_cast<std::uint32_t>(data.size()), 4) + type + data + "sums";
}

std::string png_head(std::uint32_t width, std::uint32_t height, int depth = 8, int colour = 2,
                     bool is_interlaced = false) {
  return png_part("IHDR", big_endian(width, 4) + big_endian(height, 4) + static_cast<char>(depth) +
                              static_cast<char>(colour) + std::string(2, '\0') +
                              static_cast<char>(is_interlaced));
}

// Stored by deflate, without compression.
std::string stored(std::size_t n_bytes) {
  std::string text = "\x78\x01";
  constexpr std::size_t kBlock = 65535;
  while (n_bytes > 0) {
    const std::size_t n = std::min(n_bytes, kBlock);
    n_bytes -= n;
    text += static_cast<char>(n_bytes == 0);
    for (const std::size_t length : {n, n ^ 0xFFFFU}) {
      text += static_cast<char>(length);
      text += static_cast<char>(length >> 8U);
    }
    text.append(n, 'x');
  }
  return text + "adle";
}

const std::string kSignature = "\x89PNG\r\n\x1a\n";
const std::string kEnd = png_part("IEND", "");

std::string png(const std::string& parts) { return kSignature + parts; }

std::string jpeg_part(int marker, const std::string& data) {
  return std::string("\xFF") + static_cast<char>(marker) +
         big_endian(static_cast<std::uint32_t>(data.size() + 2), 2) + data;
}

std::string jpeg_frame(std::uint32_t width, std::uint32_t height, int marker = 0xC0) {
  return jpeg_part(marker, "\x08" + big_endian(height, 2) + big_endian(width, 2) +
                               "\x01"
                               "123");
}

std::string jpeg(const std::string& parts) { return "\xFF\xD8" + parts + "\xFF\xD9"; }

std::string answer(const std::string& file, const ImageLimits& limits = kImageLimits) {
  const Result<ImageSize> size = check_image_file(std::as_bytes(std::span(file)), limits);
  if (!size) return size.error().message;
  return std::to_string(size->width) + "x" + std::to_string(size->height);
}

bool says(const std::string& answered, const std::string& words) {
  return answered.find(words) != std::string::npos;
}

TEST(ImageFile, APngHasTheSizeThatItSays) {
  const std::string data = png_part("IDAT", stored(4 * (1 + 15)));
  EXPECT_EQ(answer(png(png_head(5, 4) + data + kEnd)), "5x4");
  EXPECT_EQ(
      answer(png(png_head(5, 4) + png_part("tEXt", "hi") + png_part("PLTE", "123") + data + kEnd)),
      "5x4");
  EXPECT_EQ(answer(png(png_head(5, 4, 8, 2, true) + data + kEnd)), "5x4");
}

TEST(ImageFile, APngThatUnpacksToMoreThanItsSizeIsRefused) {
  const auto with = [](std::size_t n, bool is_interlaced = false) {
    return answer(png(png_head(5, 4, 8, 2, is_interlaced) + png_part("IDAT", stored(n)) + kEnd));
  };
  EXPECT_EQ(with(64), "5x4");
  EXPECT_TRUE(says(with(65), "unpacks to more"));
  // Passes of an interlaced one: 1x1, 1x1, none, 1x1, 3x1, 2x2, 5x2 pixels.
  constexpr std::size_t kPasses = 4 + 4 + 0 + 4 + 10 + 2 * 7 + 2 * 16;
  EXPECT_EQ(with(kPasses, true), "5x4");
  EXPECT_TRUE(says(with(kPasses + 1, true), "unpacks to more"));
  // Over two parts.
  const std::string whole = stored(65);
  EXPECT_TRUE(says(answer(png(png_head(5, 4) + png_part("IDAT", whole.substr(0, 1)) +
                              png_part("IDAT", whole.substr(1)) + kEnd)),
                   "unpacks to more"));
}

TEST(ImageFile, SizesBeyondTheLimitsAreRefusedByTheHeadAlone) {
  EXPECT_TRUE(says(answer(png(png_head(4097, 4096))), "larger than"));
  EXPECT_TRUE(says(answer(png(png_head(16385, 1))), "larger than"));
  EXPECT_TRUE(says(answer(png(png_head(0xFFFFFFFF, 0xFFFFFFFF))), "larger than"));
  EXPECT_TRUE(says(answer(png(png_head(0, 4))), "no pixels"));
  EXPECT_TRUE(says(answer(png(png_head(4096, 4096, 16, 6))), "unpacked"));
  EXPECT_TRUE(says(answer(jpeg(jpeg_frame(4097, 4096))), "larger than"));
  EXPECT_TRUE(says(answer(jpeg(jpeg_frame(3, 0))), "no pixels"));
  // The largest that are taken.
  EXPECT_EQ(answer(png(png_head(4096, 4096) + kEnd)), "4096x4096");
  EXPECT_EQ(answer(png(png_head(16384, 1024) + kEnd)), "16384x1024");
  EXPECT_EQ(answer(jpeg(jpeg_frame(4096, 4096))), "4096x4096");
  const std::string whole = jpeg(jpeg_frame(3, 2));
  ImageLimits limits;
  limits.file_bytes_max = whole.size();
  EXPECT_EQ(answer(whole, limits), "3x2");
  limits.file_bytes_max = whole.size() - 1;
  EXPECT_TRUE(says(answer(whole, limits), "larger than"));
}

TEST(ImageFile, DamagedPngsAreRefused) {
  EXPECT_TRUE(says(answer(png("")), "no end"));
  EXPECT_TRUE(says(answer(png(kEnd)), "does not begin with a head"));
  EXPECT_TRUE(says(answer(png(png_head(5, 4))), "no end"));
  EXPECT_TRUE(says(answer(png(png_head(5, 4) + png_head(5, 4) + kEnd)), "two heads"));
  EXPECT_TRUE(says(answer(png(png_head(5, 4) + png_part("CgBI", "") + kEnd)), "no standard"));
  // A library may unpack what another one does not.
  EXPECT_TRUE(says(answer(png(png_head(5, 4) + png_part("IDAT", "\x78\x01\x07what") + kEnd)),
                   "cannot be unpacked"));
  EXPECT_TRUE(says(answer(png(png_part("IHDR", "short") + kEnd)), "another length"));
  EXPECT_TRUE(says(answer(png(png_head(5, 4, 3) + kEnd)), "no PNG has"));
  EXPECT_TRUE(says(answer(png(png_head(5, 4, 8, 5) + kEnd)), "no PNG has"));
  EXPECT_TRUE(says(answer(png(png_head(5, 4, 8, 200) + kEnd)), "no PNG has"));
  const std::string whole = png(png_head(5, 4) + png_part("IDAT", stored(64)) + kEnd);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(check_image_file(std::as_bytes(std::span(whole).first(n)))) << n;
  }
}

TEST(ImageFile, AJpegHasTheSizeOfItsOnlyFrame) {
  const std::string thumbnail = jpeg_part(0xE1, jpeg(jpeg_frame(9, 9)));
  EXPECT_EQ(answer(jpeg(thumbnail + jpeg_frame(300, 200, 0xC2))), "300x200");
  EXPECT_TRUE(says(answer(jpeg(jpeg_frame(3, 2) + jpeg_frame(3, 2))), "two frames"));
  EXPECT_TRUE(says(answer(jpeg("")), "no frame"));
  EXPECT_TRUE(says(answer(jpeg(jpeg_frame(3, 2, 0xC3))), "no frame"));
  EXPECT_TRUE(says(answer(jpeg(jpeg_part(0xC0, "short"))), "no size"));
  EXPECT_TRUE(says(answer("\xFF\xD8\xFF\xE0\x7F\xFF"), "too early"));
}

TEST(ImageFile, AJpegHasSoManyScansAtMost) {
  const std::string scan = jpeg_part(0xDA, "123") + std::string("\x01\xFF\x00\x02", 4);
  std::string scans;
  for (int i = 0; i < kImageLimits.jpeg_scans_max; ++i) scans += scan;
  EXPECT_EQ(answer(jpeg(jpeg_frame(3, 2, 0xC2) + scans)), "3x2");
  EXPECT_TRUE(says(answer(jpeg(jpeg_frame(3, 2, 0xC2) + scans + scan)), "scans"));
}

TEST(ImageFile, OtherFilesAreRefused) {
  for (const std::string& file :
       {std::string(), std::string("GIF89a"), std::string("RIFF....WEBPVP8 "), std::string("ID3"),
        std::string("BM"), std::string(1000, '\0')}) {
    EXPECT_TRUE(says(answer(file), "only PNG and JPEG"));
  }
}

}  // namespace
}  // namespace slipstream
