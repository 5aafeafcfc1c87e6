// UniqueFd: sole owner of a file descriptor, closed at the end of its life. And the few calls on
// descriptors that every room needs, with errors that name the file.
//
// Threads: thread-compatible.
// Errors:  as of the system call, with the path in the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"

namespace slipstream {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
  void reset();
  // The caller closes it.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// open(2) with O_CLOEXEC added; mode is used when the flags create the file.
[[nodiscard]] Result<UniqueFd> open_file(const std::string& path, int flags, unsigned mode = 0644);

// Fills all of `into` from `offset`, however many calls that takes; a shorter file is kCorrupt.
[[nodiscard]] Result<void> read_exactly(int fd, std::span<std::byte> into, std::uint64_t offset);

// Writes all of `from` at the descriptor's position, however many calls that takes.
[[nodiscard]] Result<void> write_exactly(int fd, std::span<const std::byte> from);

// The whole text of a small file, such as those of /proc (Limits::small_file_bytes_max).
[[nodiscard]] Result<std::string> read_small_file(const std::string& path);

}  // namespace slipstream
