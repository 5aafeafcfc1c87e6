// PartialFile: a download on disk, and which chunks of it are there.
//
// Two files: the data, of full size from the start (and with its blocks reserved, where the file
// system can), and a map that survives a crash at any moment:
//
//   "slipstream chunks 1 N_BYTES CHUNK_BYTES" and spaces up to 63 bytes, '\n'; then one byte for
//   each chunk: '1' once its data are safe on disk, else '0'
//
// A mark is one byte, so that it is there or not; data are flushed before it. A lost mark costs a
// chunk; a map that does not fit the data is begun anew.
//
// Threads: write() and finish_chunk() from any number; the rest while nobody writes.
// Errors:  as of the system calls; kIo with advice where the disk is full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slipstream::hub {

// A 256th of the file, in powers of two from 256 KiB to 8 MiB: what one connection may lose.
[[nodiscard]] std::uint64_t chunk_bytes_for(std::uint64_t n_bytes);

class PartialFile {
 public:
  // Goes on with what is there, if it is of the same size and chunks. n_bytes > 0.
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
  // All its bytes have been written.
  [[nodiscard]] Result<void> finish_chunk(std::size_t chunk_idx);

  // Makes it the whole file `path`, at once.
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
  std::vector<char> marks_;  // each belongs to who downloads that chunk
};

// What of it the disk holds already, for those who ask for space.
[[nodiscard]] std::uint64_t allocated_bytes(const std::filesystem::path& data);

}  // namespace slipstream::hub
