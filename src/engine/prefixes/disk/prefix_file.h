// PrefixFile: a file with the state of a sequence after its first tokens. The byte layout and a
// worked example are in docs/formats/prefix-file.md.
//
// Every length is checked against the file's size and the limits before it is used, and every part
// has a checksum: reading returns what was written, or an error.
//
// Threads: thread-compatible; several threads may read one PrefixFile.
// Errors:  kCorrupt for a damaged or incomplete file; kUnsupported for another format version; kIo.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/prefixes/disk/disk_limits.h"
#include "engine/request.h"

namespace slipstream {

// zstd's. Speed matters most, because the processor has a model to compute. Measured on 256 MiB of
// normally distributed f16: level 1 shrinks them by 8 %; it takes 740 ms of a core to write and
// 420 ms to read. Level -1 does not shrink them; it takes 170 ms and 95 ms. Both shrink zeroes by a
// factor of 19000.
inline constexpr int kPrefixFrameLevel = -1;

// Identifies what a state is valid for: model file, KV cache scheme, engine version, context
// parameters. The code that saves states computes it; here it is 32 bytes to compare.
using Fingerprint = std::array<std::byte, 32>;

struct PrefixHead {
  Fingerprint fingerprint = {};
  std::uint64_t salt = 0;  // prefixes of different salts are never shared
  std::vector<Token> tokens = {};
  std::uint64_t state_bytes = 0;
};

// Called before each part is written, with the bytes written so far and those to be written now. An
// error stops the writing.
using MakeRoom = std::function<Result<void>(std::uint64_t n_written, std::uint64_t n_more)>;

// Writes to the beginning of an empty file and returns its size.
// REQUIRES: head.state_bytes == state.size().
[[nodiscard]] Result<std::uint64_t> write_prefix_file(int fd, const PrefixHead& head,
                                                      std::span<const std::byte> state,
                                                      const MakeRoom& make_room);

// Upper bound of the size of such a file.
[[nodiscard]] std::uint64_t prefix_file_bytes_max(std::size_t n_tokens, std::uint64_t state_bytes);

class PrefixFile {
 public:
  // Reads and checks everything except the state.
  [[nodiscard]] static Result<PrefixFile> open(UniqueFd fd, const DiskLimits& limits = kDiskLimits);

  [[nodiscard]] const PrefixHead& head() const { return head_; }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }

  // Fills all of `into`; its contents are undefined after an error.
  // REQUIRES: into.size() == head().state_bytes.
  [[nodiscard]] Result<void> read_state(std::span<std::byte> into) const;

 private:
  PrefixFile() = default;
  [[nodiscard]] Result<std::vector<std::byte>> read_index(const DiskLimits& limits) const;
  [[nodiscard]] Result<void> parse_index(std::span<const std::byte> index,
                                         const DiskLimits& limits);

  UniqueFd fd_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t index_bytes_ = 0;  // compressed
  PrefixHead head_;
  std::vector<std::uint32_t> block_bytes_;  // compressed
};

}  // namespace slipstream
