// PartialFile: a download on disk, and which of its chunks are complete. It has two files: the
// data, with its full size from the start (and its blocks reserved if the file system can), and a
// map that survives a crash at any moment:
//
//   "slipstream chunks 1 N_BYTES CHUNK_BYTES" and spaces up to 63 bytes, '\n'; then one byte for
//   each chunk: '1' once its data are safe on disk, else '0'
//
// A mark is one byte, so it is written or not. Data are flushed before their mark. A lost mark
// costs one chunk. A map that does not match the data is started anew.
//
// Threads: write() and finish_chunk() from any number; the rest while nobody writes.
// Errors:  those of the system calls; kIo with advice if the disk is full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slipstream::hub {

// A 256th of the file, as a power of two from 256 KiB to 8 MiB: what one connection may lose.
[[nodiscard]] std::uint64_t chunk_bytes_for(std::uint64_t n_bytes);

class PartialFile {
 public:
  // Continues an existing download if its size and chunks are the same. REQUIRES: n_bytes > 0.
  [[nodiscard]] static Result<PartialFile> open(const std::filesystem::path& data,
                                                const std::filesystem::path& map,
                                                std::uint64_t n_bytes);

  [[nodiscard]] std::uint64_t n_bytes() const { return n_bytes_; }
  [[nodiscard]] std::size_t n_chunks() const { return marks_.size(); }
  [[nodiscard]] std::uint64_t chunk_begin(std::size_t chunk_idx) const {
    return chunk_idx * chunk_bytes_;
  }
  [[nodiscard]] std::uint64_t chunk_end(std::size_t chunk_idx) const;
  [[nodiscard]] std::size_t chunk_at(std::uint64_t offset) const {
    return static_cast<std::size_t>(offset / chunk_bytes_);
  }
  [[nodiscard]] bool has_chunk(std::size_t chunk_idx) const { return marks_[chunk_idx] == '1'; }
  [[nodiscard]] std::uint64_t done_bytes() const;

  [[nodiscard]] Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  // REQUIRES: all bytes of the chunk have been written.
  [[nodiscard]] Result<void> finish_chunk(std::size_t chunk_idx);

  // Atomically makes the data the complete file `path`.
  [[nodiscard]] Result<void> publish(const std::filesystem::path& path) const;
  // Removes both files.
  void remove() const;

 private:
  PartialFile() = default;
  [[nodiscard]] Result<bool> open_data();
  [[nodiscard]] Result<void> open_map(bool is_data_fresh);

  std::filesystem::path data_path_;
  std::filesystem::path map_path_;
  UniqueFd data_;
  UniqueFd map_;
  std::uint64_t n_bytes_ = 0;
  std::uint64_t chunk_bytes_ = 0;
  std::vector<char> marks_;  // each belongs to the thread that downloads that chunk
};

// How much of the file is already allocated on disk, for checks of free space.
[[nodiscard]] std::uint64_t allocated_bytes(const std::filesystem::path& data);

}  // namespace slipstream::hub
