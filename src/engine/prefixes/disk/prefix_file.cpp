#include "engine/prefixes/disk/prefix_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/format.h"
#include "base/zstd_frame.h"

namespace slipstream {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

// The first and the last bytes of the file; zstd skips these frames.
struct Edge {
  std::uint32_t skippable = 0x184D2A50;
  std::uint32_t n_more = 8;
  std::uint32_t number;
  std::array<char, 4> name;
};
static_assert(sizeof(Edge) == 16);
constexpr std::array<char, 4> kHeaderName = {'S', 'L', 'I', 'P'};
constexpr std::array<char, 4> kTrailerName = {'P', 'I', 'L', 'S'};
constexpr std::uint32_t kVersion = 1;

// The beginning of the index; tokens and block sizes follow.
struct IndexHead {
  Fingerprint fingerprint;
  std::uint64_t salt;
  std::uint64_t state_bytes;
  std::uint32_t n_tokens;
  std::uint32_t n_blocks;
};
static_assert(sizeof(IndexHead) == 56);

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;  // of a state, in a frame of its own

std::uint64_t n_blocks_of(std::uint64_t state_bytes) {
  return state_bytes / kBlockBytes + (state_bytes % kBlockBytes == 0 ? 0 : 1);
}

std::uint64_t index_bytes_of(std::uint64_t n_tokens, std::uint64_t n_blocks) {
  return sizeof(IndexHead) + n_tokens * sizeof(Token) + n_blocks * sizeof(std::uint32_t);
}

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

class Appender {
 public:
  Appender(int fd, const MakeRoom& make_room) : fd_(fd), make_room_(make_room) {}

  Result<void> append(std::span<const std::byte> bytes) {
    if (Result<void> room = make_room_(n_bytes_, bytes.size()); !room) return room;
    n_bytes_ += bytes.size();
    return write_exactly(fd_, bytes);
  }
  [[nodiscard]] std::uint64_t n_bytes() const { return n_bytes_; }

 private:
  int fd_;
  const MakeRoom& make_room_;
  std::uint64_t n_bytes_ = 0;
};

std::vector<std::byte> index_of(const PrefixHead& head,
                                const std::vector<std::uint32_t>& block_bytes) {
  const IndexHead fields = {.fingerprint = head.fingerprint,
                            .salt = head.salt,
                            .state_bytes = head.state_bytes,
                            .n_tokens = static_cast<std::uint32_t>(head.tokens.size()),
                            .n_blocks = static_cast<std::uint32_t>(block_bytes.size())};
  std::vector<std::byte> index;
  index.reserve(index_bytes_of(fields.n_tokens, fields.n_blocks));
  index.append_range(bytes_of(fields));
  index.append_range(std::as_bytes(std::span(head.tokens)));
  index.append_range(std::as_bytes(std::span(block_bytes)));
  return index;
}

}  // namespace

std::uint64_t prefix_file_bytes_max(std::size_t n_tokens, std::uint64_t state_bytes) {
  return 2 * sizeof(Edge) + state_bytes / kBlockBytes * frame_bytes_max(kBlockBytes) +
         frame_bytes_max(state_bytes % kBlockBytes) +
         frame_bytes_max(index_bytes_of(n_tokens, n_blocks_of(state_bytes)));
}

Result<std::uint64_t> write_prefix_file(int fd, const PrefixHead& head,
                                        std::span<const std::byte> state,
                                        const MakeRoom& make_room) {
  SLIP_CHECK(!head.tokens.empty() && !state.empty(), "a prefix without tokens or state");
  SLIP_CHECK(head.state_bytes == state.size(), "a head of another state");
  FrameEncoder encoder(kPrefixFrameLevel);
  Appender file(fd, make_room);
  const Edge header = {.number = kVersion, .name = kHeaderName};
  if (Result<void> done = file.append(bytes_of(header)); !done) {
    return std::unexpected(std::move(done.error()));
  }
  std::vector<std::uint32_t> block_bytes;
  while (!state.empty()) {
    const std::size_t n_bytes = std::min(state.size(), kBlockBytes);
    const auto frame = encoder.encode(state.first(n_bytes));
    if (!frame) return std::unexpected(frame.error());
    if (Result<void> done = file.append(*frame); !done) {
      return std::unexpected(std::move(done.error()));
    }
    block_bytes.push_back(static_cast<std::uint32_t>(frame->size()));
    state = state.subspan(n_bytes);
  }
  const auto index = encoder.encode(index_of(head, block_bytes));
  if (!index) return std::unexpected(index.error());
  const Edge trailer = {.number = static_cast<std::uint32_t>(index->size()), .name = kTrailerName};
  Result<void> done = file.append(*index);
  if (done) done = file.append(bytes_of(trailer));
  if (!done) return std::unexpected(std::move(done.error()));
  return file.n_bytes();
}

Result<PrefixFile> PrefixFile::open(UniqueFd fd, const DiskLimits& limits) {
  PrefixFile file;
  file.fd_ = std::move(fd);
  struct stat status{};
  if (::fstat(file.fd_.get(), &status) != 0) return fail_errno(errno, "cannot look at the file");
  file.file_bytes_ = static_cast<std::uint64_t>(status.st_size);
  if (file.file_bytes_ < 2 * sizeof(Edge)) return fail(Code::kCorrupt, "the file is too short");

  Edge header{};
  Edge trailer{};
  Result<void> read =
      read_exactly(file.fd_.get(), std::as_writable_bytes(std::span(&header, 1)), 0);
  if (read) {
    read = read_exactly(file.fd_.get(), std::as_writable_bytes(std::span(&trailer, 1)),
                        file.file_bytes_ - sizeof(Edge));
  }
  if (!read) return std::unexpected(std::move(read.error()));
  constexpr Edge kExpected{};
  if (header.skippable != kExpected.skippable || header.n_more != kExpected.n_more ||
      header.name != kHeaderName) {
    return fail(Code::kCorrupt, "the file does not begin as a prefix file");
  }
  if (header.number != kVersion) {
    return fail(Code::kUnsupported, format_text("the file has version {} of the format, not {}",
                                                header.number, kVersion));
  }
  if (trailer.skippable != kExpected.skippable || trailer.n_more != kExpected.n_more ||
      trailer.name != kTrailerName) {
    return fail(Code::kCorrupt, "the file does not end as a prefix file");
  }
  file.index_bytes_ = trailer.number;
  Result<std::vector<std::byte>> index = file.read_index(limits);
  if (!index) return std::unexpected(std::move(index.error()));
  if (Result<void> parsed = file.parse_index(*index, limits); !parsed) {
    return std::unexpected(std::move(parsed.error()));
  }
  return file;
}

Result<std::vector<std::byte>> PrefixFile::read_index(const DiskLimits& limits) const {
  const std::uint64_t content_bytes_max =
      index_bytes_of(limits.prefix_tokens_max, n_blocks_of(limits.prefix_state_bytes_max));
  if (index_bytes_ > file_bytes_ - 2 * sizeof(Edge) ||
      index_bytes_ > frame_bytes_max(content_bytes_max)) {
    return fail(Code::kCorrupt, format_text("an index of {} bytes", index_bytes_));
  }
  std::vector<std::byte> frame(index_bytes_);
  if (Result<void> read = read_exactly(fd_.get(), frame, file_bytes_ - sizeof(Edge) - index_bytes_);
      !read) {
    return std::unexpected(std::move(read.error()));
  }
  const Result<std::uint64_t> content_bytes = FrameDecoder::content_bytes(frame);
  if (!content_bytes) return std::unexpected(content_bytes.error());
  if (*content_bytes < sizeof(IndexHead) || *content_bytes > content_bytes_max) {
    return fail(Code::kCorrupt, format_text("an index with {} bytes of content", *content_bytes));
  }
  std::vector<std::byte> index(*content_bytes);
  if (Result<void> decoded = FrameDecoder().decode(frame, index); !decoded) {
    return std::unexpected(std::move(decoded.error()));
  }
  return index;
}

Result<void> PrefixFile::parse_index(std::span<const std::byte> index, const DiskLimits& limits) {
  IndexHead fields;
  std::memcpy(&fields, index.data(), sizeof(fields));
  if (fields.n_tokens == 0 || fields.n_tokens > limits.prefix_tokens_max ||
      fields.state_bytes == 0 || fields.state_bytes > limits.prefix_state_bytes_max ||
      fields.n_blocks != n_blocks_of(fields.state_bytes) ||
      index.size() != index_bytes_of(fields.n_tokens, fields.n_blocks)) {
    return fail(
        Code::kCorrupt,
        format_text("an index of {} bytes with {} tokens and {} blocks of {} bytes of state",
                    index.size(), fields.n_tokens, fields.n_blocks, fields.state_bytes));
  }
  head_ = {.fingerprint = fields.fingerprint,
           .salt = fields.salt,
           .tokens = std::vector<Token>(fields.n_tokens),
           .state_bytes = fields.state_bytes};
  block_bytes_.resize(fields.n_blocks);
  const std::size_t tokens_bytes = head_.tokens.size() * sizeof(Token);
  index = index.subspan(sizeof(fields));
  std::memcpy(head_.tokens.data(), index.data(), tokens_bytes);
  std::memcpy(block_bytes_.data(), index.data() + tokens_bytes, index.size() - tokens_bytes);

  const std::uint64_t blocks_bytes =
      std::accumulate(block_bytes_.begin(), block_bytes_.end(), std::uint64_t{0});
  if (std::ranges::max(block_bytes_) > frame_bytes_max(kBlockBytes) ||
      blocks_bytes + index_bytes_ + 2 * sizeof(Edge) != file_bytes_) {
    return fail(Code::kCorrupt,
                format_text("{} bytes of blocks in a file of {} bytes", blocks_bytes, file_bytes_));
  }
  return {};
}

Result<void> PrefixFile::read_state(std::span<std::byte> into) const {
  SLIP_CHECK(into.size() == head_.state_bytes, "a buffer of another size than the state");
  FrameDecoder decoder;
  std::vector<std::byte> frame(std::ranges::max(block_bytes_));
  std::uint64_t offset = sizeof(Edge);
  for (const std::uint32_t n_bytes : block_bytes_) {
    const std::span<std::byte> block = std::span(frame).first(n_bytes);
    Result<void> done = read_exactly(fd_.get(), block, offset);
    if (done) done = decoder.decode(block, into.first(std::min(into.size(), kBlockBytes)));
    if (!done) return done;
    into = into.subspan(std::min(into.size(), kBlockBytes));
    offset += n_bytes;
  }
  return {};
}

}  // namespace slipstream
