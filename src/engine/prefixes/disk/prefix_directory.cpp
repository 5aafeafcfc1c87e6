#include "engine/prefixes/disk/prefix_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

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
constexpr std::chrono::milliseconds kAskAgain(20);

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

}  // namespace

PrefixDirectory::PrefixDirectory(PrivateFolder folder) : folder_(std::move(folder)) {}

Result<PrefixDirectory> PrefixDirectory::open(const std::string& path) {
  Result<PrivateFolder> folder = PrivateFolder::open_shared(path);
  if (!folder) return std::unexpected(std::move(folder.error()));
  return PrefixDirectory(std::move(*folder));
}

Result<PrefixDirectory::Turn> PrefixDirectory::take_turn(std::chrono::milliseconds time_max,
                                                         const std::stop_token& stop) const {
  const auto end = std::chrono::steady_clock::now() + time_max;
  Result<UniqueFd> lock = folder_.try_lock(kLockName);
  // A lock with a time limit does not exist, so it is asked for again and again.
  while (!lock && lock.error().code == Code::kOverloaded && !stop.stop_requested() &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kAskAgain);
    lock = folder_.try_lock(kLockName);
  }
  if (!lock) return std::unexpected(std::move(lock.error()));
  Result<std::vector<std::string>> names = folder_.names();
  if (!names) return std::unexpected(std::move(names.error()));
  for (const std::string& name : *names) {
    if (id_of(name, kTemporaryEnd)) folder_.discard(name);
  }
  return Turn(std::move(*lock));
}

Result<std::int64_t> PrefixDirectory::changed_at_ns() const {
  struct stat status{};
  if (::fstat(folder_.fd(), &status) != 0) {
    return fail_errno(errno, format_text("cannot look at {}", path()));
  }
  return status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

Result<std::vector<EntryId>> PrefixDirectory::ids() const {
  Result<std::vector<std::string>> names = folder_.names();
  if (!names) return std::unexpected(std::move(names.error()));
  std::vector<EntryId> ids;
  for (const std::string& name : *names) {
    if (const std::optional<EntryId> id = id_of(name, kEnd)) ids.push_back(*id);
  }
  return ids;
}

Result<std::vector<PrefixDirectory::File>> PrefixDirectory::list() const {
  Result<std::vector<std::string>> all_names = folder_.names();
  if (!all_names) return std::unexpected(std::move(all_names.error()));
  std::vector<File> files;
  for (const std::string& name : *all_names) {
    const std::optional<EntryId> id = id_of(name, kEnd);
    struct stat status{};
    if (!id || ::fstatat(folder_.fd(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
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

Result<std::uint64_t> PrefixDirectory::file_bytes(EntryId id) const {
  struct stat status{};
  if (::fstatat(folder_.fd(), name_of(id, kEnd).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail_errno(errno, format_text("cannot look at {}", name_of(id, kEnd)));
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(Code::kUnsupported, format_text("{} is no file", name_of(id, kEnd)));
  }
  return static_cast<std::uint64_t>(status.st_size);
}

Result<UniqueFd> PrefixDirectory::open_file(EntryId id) const {
  // O_NONBLOCK: do not wait for a writer if the name has become a pipe.
  return folder_.open_file(name_of(id, kEnd), O_RDONLY | O_NONBLOCK);
}

Result<void> PrefixDirectory::remove(EntryId id) const { return folder_.remove(name_of(id, kEnd)); }

void PrefixDirectory::touch(EntryId id, std::chrono::system_clock::time_point used_at) const {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(used_at.time_since_epoch());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                             {.tv_sec = seconds.count(), .tv_nsec = (now - seconds).count()}};
  const std::string name = name_of(id, kEnd);
  if (::utimensat(folder_.fd(), name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) {
    // The only consequence: the file is deleted earlier than it should be.
    log::debug("disk_tier.touch_failed", {{"file", name}});
  }
}

Result<UniqueFd> PrefixDirectory::create(EntryId id) const {
  return folder_.open_file(name_of(id, kTemporaryEnd), O_WRONLY | O_CREAT | O_EXCL);
}

Result<void> PrefixDirectory::publish(EntryId id, const UniqueFd& fd) const {
  if (Result<void> published = folder_.publish(fd, name_of(id, kTemporaryEnd), name_of(id, kEnd));
      !published) {
    return published;
  }
  // The kernel's file time advances in steps of milliseconds, too coarse to order two files.
  touch(id, std::chrono::system_clock::now());
  return {};
}

void PrefixDirectory::discard(EntryId id) const {
  for (const std::string_view end : {kTemporaryEnd, kEnd}) folder_.discard(name_of(id, end));
}

Result<std::uint64_t> PrefixDirectory::spare_bytes(std::uint64_t reserve_bytes_max) const {
  struct statvfs status{};
  if (::fstatvfs(folder_.fd(), &status) != 0) {
    return fail_errno(errno, format_text("cannot ask for the free space of {}", path()));
  }
  const std::uint64_t free_bytes = std::uint64_t{status.f_bavail} * status.f_frsize;
  const std::uint64_t disk_bytes = std::uint64_t{status.f_blocks} * status.f_frsize;
  const std::uint64_t reserve_bytes = std::min(disk_bytes / kReservePart, reserve_bytes_max);
  return free_bytes > reserve_bytes ? free_bytes - reserve_bytes : 0;
}

}  // namespace slipstream
