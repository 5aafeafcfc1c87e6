#include "base/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/check.h"
#include "base/format.h"
#include "base/unique_fd.h"

namespace slipstream {

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    reset();
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

void Mapping::reset() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  bytes_ = {};
}

void Mapping::zero() {
  if (bytes_.empty()) return;
  const int status = ::madvise(bytes_.data(), bytes_.size(), MADV_DONTNEED);
  SLIP_CHECK(status == 0, "MADV_DONTNEED refused on memory of our own");
}

Result<Mapping> Mapping::map(std::size_t n_bytes, int protection, int flags, int fd,
                             const std::string& what) {
  if (n_bytes == 0) return Mapping();  // mmap refuses a length of zero
  void* start = ::mmap(nullptr, n_bytes, protection, flags, fd, 0);
  if (start == MAP_FAILED) return fail_errno(errno, what);
  return Mapping(std::span(static_cast<std::byte*>(start), n_bytes));
}

Result<Mapping> Mapping::of_file(const std::string& path) {
  Result<UniqueFd> fd = open_file(path, O_RDONLY);
  if (!fd) return std::unexpected(std::move(fd.error()));
  struct stat status{};
  const std::string what = format_text("cannot map {}", path);
  if (::fstat(fd->get(), &status) != 0) return fail_errno(errno, what);
  return map(static_cast<std::size_t>(status.st_size), PROT_READ, MAP_SHARED, fd->get(), what);
}

Result<Mapping> Mapping::anonymous(std::size_t n_bytes) {
  return map(n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
             format_text("cannot reserve {} bytes", n_bytes));
}

}  // namespace slipstream
