// Mapping: sole owner of a range of mapped memory, unmapped at the end of its life.
//
// Threads: thread-compatible. The memory itself is as safe as what it maps.
// Errors:  kOutOfMemory when the address space or memory does not suffice, others as of mmap(2). A
//          mapped file that shrinks later raises SIGBUS on access: read what may shrink with
//          read_exactly() instead.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"

namespace slipstream {

class Mapping {
 public:
  // The whole file, read-only. An empty file gives an empty mapping.
  [[nodiscard]] static Result<Mapping> of_file(const std::string& path);
  // Zeroed memory of our own, taken from the system page by page as it is first touched.
  [[nodiscard]] static Result<Mapping> anonymous(std::size_t n_bytes);

  Mapping() = default;
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { reset(); }

  // Writing to a mapping of a file faults; only anonymous ones are writable.
  [[nodiscard]] std::span<std::byte> bytes() { return bytes_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  void reset();
  // Anonymous mappings only: all bytes zero again, their pages given back to the system.
  void zero();

 private:
  explicit Mapping(std::span<std::byte> bytes) : bytes_(bytes) {}
  static Result<Mapping> map(std::size_t n_bytes, int protection, int flags, int fd,
                             const std::string& what);

  std::span<std::byte> bytes_;
};

}  // namespace slipstream
