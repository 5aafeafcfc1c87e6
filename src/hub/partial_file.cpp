#include "hub/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>

#include "base/check.h"
#include "base/format.h"

namespace slipstream::hub {
namespace {

constexpr std::size_t kHeaderBytes = 64;

std::string make_header(std::uint64_t n_bytes, std::uint64_t chunk_bytes) {
  std::string header = format_text("slipstream chunks 1 {} {}", n_bytes, chunk_bytes);
  SLIP_CHECK(header.size() < kHeaderBytes, "two numbers do not fit into the header");
  header.resize(kHeaderBytes - 1, ' ');
  return header + '\n';
}

std::unexpected<Error> fail_to_write(int error_number, const std::filesystem::path& path) {
  std::unexpected<Error> error =
      fail_errno(error_number, format_text("cannot write {}", path.string()));
  if (error_number == ENOSPC || error_number == EDQUOT) {
    error.error().message +=
        ": free some space and run the same command again, it resumes where it stopped";
  }
  return error;
}

Result<void> write_at(const UniqueFd& fd, std::uint64_t offset, std::span<const std::byte> bytes,
                      const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_to_write(errno, path);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

}  // namespace

std::uint64_t chunk_bytes_for(std::uint64_t n_bytes) {
  constexpr std::uint64_t kMin = std::uint64_t{256} << 10;
  constexpr std::uint64_t kMax = std::uint64_t{8} << 20;
  return std::clamp(std::bit_ceil(n_bytes / 256), kMin, kMax);
}

Result<PartialFile> PartialFile::open(const std::filesystem::path& data,
                                      const std::filesystem::path& map, std::uint64_t n_bytes) {
  SLIP_CHECK(n_bytes > 0, "an empty file has nothing to download");
  PartialFile file;
  file.data_path_ = data;
  file.map_path_ = map;
  file.n_bytes_ = n_bytes;
  file.chunk_bytes_ = chunk_bytes_for(n_bytes);
  file.marks_.assign((n_bytes + file.chunk_bytes_ - 1) / file.chunk_bytes_, '0');
  const Result<bool> is_fresh = file.open_data();
  if (!is_fresh) return std::unexpected(is_fresh.error());
  if (Result<void> opened = file.open_map(*is_fresh); !opened) {
    return std::unexpected(std::move(opened.error()));
  }
  return file;
}

// Returns whether the data are new, so that no mark is valid.
Result<bool> PartialFile::open_data() {
  Result<UniqueFd> fd = open_file(data_path_.string(), O_RDWR | O_CREAT);
  if (!fd) return std::unexpected(std::move(fd.error()));
  data_ = std::move(*fd);
  struct stat status{};
  if (::fstat(data_.get(), &status) != 0) {
    return fail_errno(errno, format_text("cannot access {}", data_path_.string()));
  }
  if (static_cast<std::uint64_t>(status.st_size) == n_bytes_) return false;
  // The map is removed first: a crash in between must not leave marks for data that are gone.
  ::unlink(map_path_.c_str());
  const auto n_bytes = static_cast<off_t>(n_bytes_);
  const bool is_sized = ::ftruncate(data_.get(), 0) == 0 && ::ftruncate(data_.get(), n_bytes) == 0;
  // If blocks cannot be reserved, they are allocated as they are written.
  const bool is_reserved = is_sized && (::fallocate(data_.get(), 0, 0, n_bytes) == 0 ||
                                        errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR);
  if (!is_reserved) {
    const int error = errno;
    ::unlink(data_path_.c_str());
    return fail_to_write(error, data_path_);
  }
  return true;
}

Result<void> PartialFile::open_map(bool is_data_fresh) {
  Result<UniqueFd> fd = open_file(map_path_.string(), O_RDWR | O_CREAT);
  if (!fd) return std::unexpected(std::move(fd.error()));
  map_ = std::move(*fd);
  const std::string header = make_header(n_bytes_, chunk_bytes_);
  std::string there(kHeaderBytes, '\0');
  std::vector<char> marks(marks_.size());
  const auto bytes_of = [](auto& container) {
    return std::as_writable_bytes(std::span(container));
  };
  if (!is_data_fresh && read_exactly(map_.get(), bytes_of(there), 0) && there == header &&
      read_exactly(map_.get(), bytes_of(marks), kHeaderBytes)) {
    marks_ = std::move(marks);
    return {};
  }
  if (::ftruncate(map_.get(), 0) != 0) return fail_to_write(errno, map_path_);
  if (Result<void> written =
          write_at(map_, kHeaderBytes, std::as_bytes(std::span(marks_)), map_path_);
      !written) {
    return written;
  }
  // The header is written last, so that a map with a header has all its marks.
  return write_at(map_, 0, std::as_bytes(std::span(header)), map_path_);
}

std::uint64_t PartialFile::chunk_end(std::size_t chunk_idx) const {
  return std::min(n_bytes_, chunk_begin(chunk_idx) + chunk_bytes_);
}

std::uint64_t PartialFile::done_bytes() const {
  std::uint64_t n_done = 0;
  for (std::size_t i = 0; i < n_chunks(); ++i) {
    if (has_chunk(i)) n_done += chunk_end(i) - chunk_begin(i);
  }
  return n_done;
}

Result<void> PartialFile::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  SLIP_CHECK(offset <= n_bytes_ && bytes.size() <= n_bytes_ - offset, "bytes beyond the file");
  return write_at(data_, offset, bytes, data_path_);
}

Result<void> PartialFile::finish_chunk(std::size_t chunk_idx) {
  if (::fdatasync(data_.get()) != 0) return fail_to_write(errno, data_path_);
  const char mark = '1';
  if (Result<void> written =
          write_at(map_, kHeaderBytes + chunk_idx, std::as_bytes(std::span(&mark, 1)), map_path_);
      !written) {
    return written;
  }
  marks_[chunk_idx] = mark;
  return {};
}

Result<void> PartialFile::publish(const std::filesystem::path& path) const {
  if (::fsync(data_.get()) != 0) return fail_to_write(errno, data_path_);
  if (::rename(data_path_.c_str(), path.c_str()) != 0) return fail_to_write(errno, path);
  const Result<UniqueFd> folder = open_file(path.parent_path().string(), O_RDONLY | O_DIRECTORY);
  if (!folder) return std::unexpected(folder.error());
  if (::fsync(folder->get()) != 0) return fail_to_write(errno, path.parent_path());
  ::unlink(map_path_.c_str());
  return {};
}

void PartialFile::remove() const {
  ::unlink(map_path_.c_str());
  ::unlink(data_path_.c_str());
}

std::uint64_t allocated_bytes(const std::filesystem::path& data) {
  struct stat status{};
  if (::stat(data.c_str(), &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

}  // namespace slipstream::hub
