#include "base/zstd_frame.h"

#include <zstd.h>

#include "base/check.h"
#include "base/format.h"

namespace slipstream {
std::size_t frame_bytes_max(std::size_t n_bytes) { return ZSTD_compressBound(n_bytes); }

void FrameEncoder::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }
void FrameDecoder::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

FrameEncoder::FrameEncoder(int level) : context_(ZSTD_createCCtx()) {
  if (context_ == nullptr) return;
  const std::size_t set = ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
  const std::size_t checksum = ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  SLIP_CHECK(ZSTD_isError(set) == 0 && ZSTD_isError(checksum) == 0, "zstd refuses a parameter");
}

FrameDecoder::FrameDecoder() : context_(ZSTD_createDCtx()) {}

Result<std::span<const std::byte>> FrameEncoder::encode(std::span<const std::byte> content) {
  if (context_ == nullptr) return fail(Code::kOutOfMemory, "no memory to compress with");
  frame_.resize(frame_bytes_max(content.size()));
  const std::size_t n_bytes =
      ZSTD_compress2(context_.get(), frame_.data(), frame_.size(), content.data(), content.size());
  if (ZSTD_isError(n_bytes) != 0) {
    return fail(Code::kOutOfMemory, format_text("cannot compress {} bytes: {}", content.size(),
                                                ZSTD_getErrorName(n_bytes)));
  }
  return std::span<const std::byte>(frame_).first(n_bytes);
}

Result<std::uint64_t> FrameDecoder::content_bytes(std::span<const std::byte> frame) {
  const unsigned long long n_bytes = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (n_bytes == ZSTD_CONTENTSIZE_ERROR || n_bytes == ZSTD_CONTENTSIZE_UNKNOWN) {
    return fail(Code::kCorrupt, "not a zstd frame that knows its size");
  }
  return std::uint64_t{n_bytes};
}

Result<void> FrameDecoder::decode(std::span<const std::byte> frame, std::span<std::byte> into) {
  if (context_ == nullptr) return fail(Code::kOutOfMemory, "no memory to decompress with");
  const std::size_t n_bytes =
      ZSTD_decompressDCtx(context_.get(), into.data(), into.size(), frame.data(), frame.size());
  if (ZSTD_isError(n_bytes) != 0) {
    return fail(Code::kCorrupt, format_text("a damaged frame: {}", ZSTD_getErrorName(n_bytes)));
  }
  if (n_bytes != into.size()) {
    return fail(Code::kCorrupt,
                format_text("a frame of {} bytes instead of {}", n_bytes, into.size()));
  }
  return {};
}

}  // namespace slipstream
