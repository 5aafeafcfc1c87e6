#include "base/unique_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/format.h"
#include "base/limits.h"

namespace slipstream {

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void UniqueFd::reset() {
  // Not retried on EINTR: Linux has released the descriptor already.
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<UniqueFd> open_file(const std::string& path, int flags, unsigned mode) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return fail_errno(errno, format_text("cannot open {}", path));
  return UniqueFd(fd);
}

Result<void> read_exactly(int fd, std::span<std::byte> into, std::uint64_t offset) {
  while (!into.empty()) {
    const ssize_t n_bytes = ::pread(fd, into.data(), into.size(), static_cast<off_t>(offset));
    if (n_bytes < 0 && errno == EINTR) continue;
    if (n_bytes < 0) return fail_errno(errno, format_text("cannot read at byte {}", offset));
    if (n_bytes == 0) {
      return fail(Code::kCorrupt,
                  format_text("the file ends at byte {}, {} bytes too early", offset, into.size()));
    }
    into = into.subspan(static_cast<std::size_t>(n_bytes));
    offset += static_cast<std::uint64_t>(n_bytes);
  }
  return {};
}

Result<void> write_exactly(int fd, std::span<const std::byte> from) {
  while (!from.empty()) {
    const ssize_t n_bytes = ::write(fd, from.data(), from.size());
    if (n_bytes < 0 && errno == EINTR) continue;
    if (n_bytes < 0) return fail_errno(errno, format_text("cannot write {} bytes", from.size()));
    from = from.subspan(static_cast<std::size_t>(n_bytes));
  }
  return {};
}

Result<std::string> read_small_file(const std::string& path) {
  Result<UniqueFd> fd = open_file(path, O_RDONLY);
  if (!fd) return std::unexpected(std::move(fd.error()));
  std::string text;
  std::array<char, 4096> chunk;
  while (true) {
    const ssize_t n_bytes = ::read(fd->get(), chunk.data(), chunk.size());
    if (n_bytes < 0 && errno == EINTR) continue;
    if (n_bytes < 0) return fail_errno(errno, format_text("cannot read {}", path));
    if (n_bytes == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(n_bytes));
    if (text.size() > kLimits.small_file_bytes_max) {
      return fail(Code::kInvalidArgument,
                  format_text("{} is longer than {} bytes", path, kLimits.small_file_bytes_max));
    }
  }
}

}  // namespace slipstream
