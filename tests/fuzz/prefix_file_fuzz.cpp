// A prefix file may hold anything: it is refused, or what it gives can be written and read again
// without change. Nothing is read outside of it, and no number in it makes us take much memory.
//
// The first byte says what the rest is: 0 a whole file; else an index, which is given a frame with
// a right checksum and a block of state, because chance does not find checksums.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/zstd_frame.h"
#include "engine/prefixes/disk/prefix_file.h"
#include "harness.h"

namespace {

using namespace slipstream;

constexpr DiskLimits kSmall = {.prefix_tokens_max = 10'000,
                               .prefix_state_bytes_max = std::size_t{5} << 20};

UniqueFd memory_file() {
  UniqueFd fd(::memfd_create("prefix", MFD_CLOEXEC));
  SLIP_CHECK(static_cast<bool>(fd), "no file in memory");
  return fd;
}

void append_edge(std::vector<std::byte>& file, std::uint32_t number, std::string_view name) {
  const std::uint32_t numbers[] = {0x184D2A50, 8, number};
  file.append_range(std::as_bytes(std::span(numbers)));
  file.append_range(std::as_bytes(std::span(name)));
}

std::vector<std::byte> file_with_index(std::span<const std::byte> index) {
  FrameEncoder encoder(kPrefixFrameLevel);
  std::vector<std::byte> file;
  append_edge(file, 1, "SLIP");
  const std::vector<std::byte> state(100, std::byte{7});
  file.append_range(encoder.encode(state).value());
  const auto frame = encoder.encode(index).value();
  file.append_range(frame);
  append_edge(file, static_cast<std::uint32_t>(frame.size()), "PILS");
  return file;
}

struct Content {
  PrefixHead head;
  std::vector<std::byte> state;
};

Result<Content> read(UniqueFd fd) {
  const Result<PrefixFile> file = PrefixFile::open(std::move(fd), kSmall);
  if (!file) return std::unexpected(file.error());
  Content content = {.head = file->head(),
                     .state = std::vector<std::byte>(file->head().state_bytes)};
  if (Result<void> done = file->read_state(content.state); !done) {
    return std::unexpected(std::move(done.error()));
  }
  return content;
}

}  // namespace

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  if (n_bytes == 0) return 0;
  const std::span<const std::byte> rest = std::as_bytes(std::span(data, n_bytes)).subspan(1);
  UniqueFd fd = memory_file();
  const Result<void> written =
      data[0] == 0 ? write_exactly(fd.get(), rest) : write_exactly(fd.get(), file_with_index(rest));
  SLIP_CHECK(written.has_value(), "cannot write the file");
  const Result<Content> content = read(std::move(fd));
  if (!content) {
    const Code code = content.error().code;
    SLIP_CHECK(code == Code::kCorrupt || code == Code::kUnsupported, "an error of another kind");
    return 0;
  }
  UniqueFd again = memory_file();
  const auto room = [](std::uint64_t, std::uint64_t) -> Result<void> { return {}; };
  SLIP_CHECK(write_prefix_file(again.get(), content->head, content->state, room).has_value(),
             "cannot write again");
  const Result<Content> same = read(std::move(again));
  SLIP_CHECK(same.has_value(), "what was written cannot be read");
  SLIP_CHECK(same->head.fingerprint == content->head.fingerprint &&
                 same->head.salt == content->head.salt &&
                 same->head.tokens == content->head.tokens && same->state == content->state,
             "it came back changed");
  return 0;
}
