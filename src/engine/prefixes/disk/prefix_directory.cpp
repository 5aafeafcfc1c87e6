#include "engine/prefixes/disk/prefix_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/format.h"
#include "base/log.h"

namespace slipstream {
namespace {

constexpr std::string_view kStart = "prefix-";
constexpr std::string_view kEnd = ".kv";
constexpr std::string_view kTemporaryEnd = ".kv.partial";
constexpr const char* kLockName = "prefix.lock";
constexpr std::size_t kIdDigits = 16;
constexpr std::uint64_t kReservePart = 20;  // 1/20 of the disk: 5 %

std::string name_of(EntryId id, std::string_view end) {
  return format_text("{}{:016x}{}", kStart, id, end);
}

std::optional<EntryId> id_of(std::string_view name, std::string_view end) {
  if (name.size() != kStart.size() + kIdDigits + end.size() || !name.starts_with(kStart) ||
      !name.ends_with(end)) {
    return std::nullopt;
  }
  const std::string_view digits = name.substr(kStart.size(), kIdDigits);
  EntryId id = 0;
  const auto parsed = std::from_chars(digits.begin(), digits.end(), id, 16);
  // The name is formatted again so that other spellings of the same number are rejected. The upper
  // half of all numbers is left for later ids.
  if (parsed.ec != std::errc() || id == 0 || id >> 63U != 0 || name_of(id, end) != name) {
    return std::nullopt;
  }
  return id;
}

Result<UniqueFd> open_at(const UniqueFd& directory, const std::string& name, int flags) {
  const int fd = ::openat(directory.get(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return fail_errno(errno, format_text("cannot open {}", name));
  return UniqueFd(fd);
}

Result<void> make_directory(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) return fail_errno(error.value(), format_text("cannot make {}", parent.string()));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail_errno(errno, format_text("cannot make {}", path));
  }
  return {};
}

Result<void> sync(const UniqueFd& fd, std::string_view what) {
  if (::fsync(fd.get()) != 0) return fail_errno(errno, format_text("cannot sync {}", what));
  return {};
}

}  // namespace

PrefixDirectory::PrefixDirectory(std::string path, UniqueFd directory, UniqueFd lock)
    : path_(std::move(path)), directory_(std::move(directory)), lock_(std::move(lock)) {}

Result<PrefixDirectory> PrefixDirectory::open(const std::string& path) {
  if (Result<void> made = make_directory(path); !made) {
    return std::unexpected(std::move(made.error()));
  }
  Result<UniqueFd> fd = slipstream::open_file(path, O_RDONLY | O_DIRECTORY);
  if (!fd) return std::unexpected(std::move(fd.error()));
  Result<UniqueFd> lock = open_at(*fd, kLockName, O_RDWR | O_CREAT);
  if (!lock) return std::unexpected(std::move(lock.error()));
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno(errno, format_text("cannot lock {}", path));
    return fail(Code::kOverloaded,
                format_text("{} is used by another process: give each its own directory", path));
  }
  PrefixDirectory directory(path, std::move(*fd), std::move(*lock));
  Result<std::vector<std::string>> names = directory.names();
  if (!names) return std::unexpected(std::move(names.error()));
  for (const std::string& name : *names) {
    if (id_of(name, kTemporaryEnd)) ::unlinkat(directory.directory_.get(), name.c_str(), 0);
  }
  return directory;
}

Result<std::vector<std::string>> PrefixDirectory::names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator item(path_, error), end; !error && item != end;
       item.increment(error)) {
    names.push_back(item->path().filename().string());
  }
  if (error) return fail_errno(error.value(), format_text("cannot list {}", path_));
  return names;
}

Result<std::vector<PrefixDirectory::File>> PrefixDirectory::list() const {
  Result<std::vector<std::string>> all_names = names();
  if (!all_names) return std::unexpected(std::move(all_names.error()));
  std::vector<File> files;
  for (const std::string& name : *all_names) {
    const std::optional<EntryId> id = id_of(name, kEnd);
    struct stat status{};
    if (!id || ::fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode)) {
      continue;
    }
    files.push_back({.id = *id,
                     .file_bytes = static_cast<std::uint64_t>(status.st_size),
                     .used_at_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec});
  }
  std::ranges::sort(files, {}, [](const File& file) { return std::tie(file.used_at_ns, file.id); });
  return files;
}

Result<UniqueFd> PrefixDirectory::open_file(EntryId id) const {
  // O_NONBLOCK: do not wait for a writer if the name has become a pipe.
  return open_at(directory_, name_of(id, kEnd), O_RDONLY | O_NONBLOCK);
}

Result<void> PrefixDirectory::remove(EntryId id) const {
  const std::string name = name_of(id, kEnd);
  if (::unlinkat(directory_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return fail_errno(errno, format_text("cannot remove {} in {}", name, path_));
}

void PrefixDirectory::touch(EntryId id, std::chrono::system_clock::time_point used_at) const {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(used_at.time_since_epoch());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                             {.tv_sec = seconds.count(), .tv_nsec = (now - seconds).count()}};
  const std::string name = name_of(id, kEnd);
  if (::utimensat(directory_.get(), name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) {
    // The only consequence: the file is deleted earlier than it should be.
    log::debug("disk_tier.touch_failed", {{"file", name}});
  }
}

Result<UniqueFd> PrefixDirectory::create(EntryId id) const {
  return open_at(directory_, name_of(id, kTemporaryEnd), O_WRONLY | O_CREAT | O_EXCL);
}

Result<void> PrefixDirectory::publish(EntryId id, const UniqueFd& fd) const {
  const std::string name = name_of(id, kEnd);
  if (Result<void> synced = sync(fd, name); !synced) return synced;
  if (::renameat(directory_.get(), name_of(id, kTemporaryEnd).c_str(), directory_.get(),
                 name.c_str()) != 0) {
    return fail_errno(errno, format_text("cannot rename {}", name));
  }
  // The kernel's file time advances in steps of milliseconds, too coarse to order two files.
  touch(id, std::chrono::system_clock::now());
  return sync(directory_, path_);
}

void PrefixDirectory::discard(EntryId id) const {
  for (const std::string_view end : {kTemporaryEnd, kEnd}) {
    ::unlinkat(directory_.get(), name_of(id, end).c_str(), 0);
  }
}

Result<std::uint64_t> PrefixDirectory::spare_bytes(std::uint64_t reserve_bytes_max) const {
  struct statvfs status{};
  if (::fstatvfs(directory_.get(), &status) != 0) {
    return fail_errno(errno, format_text("cannot ask for the free space of {}", path_));
  }
  const std::uint64_t free_bytes = std::uint64_t{status.f_bavail} * status.f_frsize;
  const std::uint64_t disk_bytes = std::uint64_t{status.f_blocks} * status.f_frsize;
  const std::uint64_t reserve_bytes = std::min(disk_bytes / kReservePart, reserve_bytes_max);
  return free_bytes > reserve_bytes ? free_bytes - reserve_bytes : 0;
}

}  // namespace slipstream
