#include "base/private_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/format.h"

namespace slipstream {
namespace {

Result<void> make_folder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) return fail_errno(error.value(), format_text("cannot make {}", parent.string()));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail_errno(errno, format_text("cannot make {}", path));
  }
  return {};
}

Result<UniqueFd> open_in(const UniqueFd& directory, const std::string& name, int flags) {
  const int fd = ::openat(directory.get(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return fail_errno(errno, format_text("cannot open {}", name));
  return UniqueFd(fd);
}

Result<void> sync_to_disk(const UniqueFd& fd, std::string_view what) {
  if (::fsync(fd.get()) != 0) return fail_errno(errno, format_text("cannot sync {}", what));
  return {};
}

}  // namespace

PrivateFolder::PrivateFolder(std::string path, UniqueFd directory)
    : path_(std::move(path)), directory_(std::move(directory)) {}

Result<PrivateFolder> PrivateFolder::open(const std::string& path, const std::string& lock_name) {
  Result<PrivateFolder> folder = open_shared(path);
  if (!folder) return folder;
  Result<UniqueFd> lock = folder->try_lock(lock_name);
  if (!lock && lock.error().code == Code::kOverloaded) {
    return fail(Code::kOverloaded,
                format_text("{} is used by another process: give each its own directory", path));
  }
  if (!lock) return std::unexpected(std::move(lock.error()));
  folder->lock_ = std::move(*lock);
  return folder;
}

Result<PrivateFolder> PrivateFolder::open_shared(const std::string& path) {
  if (Result<void> made = make_folder(path); !made) return std::unexpected(std::move(made.error()));
  Result<UniqueFd> fd = slipstream::open_file(path, O_RDONLY | O_DIRECTORY);
  if (!fd) return std::unexpected(std::move(fd.error()));
  return PrivateFolder(path, std::move(*fd));
}

// flock(2) also holds between the machines of an NFS mount, where Linux makes it a lock of the file.
Result<UniqueFd> PrivateFolder::try_lock(const std::string& lock_name) const {
  Result<UniqueFd> lock = open_in(directory_, lock_name, O_RDWR | O_CREAT);
  if (!lock || ::flock(lock->get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return fail_errno(errno, format_text("cannot lock {}", path_));
  return fail(Code::kOverloaded, format_text("another process has {}/{}", path_, lock_name));
}

Result<std::vector<std::string>> PrivateFolder::names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator item(path_, error), end; !error && item != end;
       item.increment(error)) {
    names.push_back(item->path().filename().string());
  }
  if (error) return fail_errno(error.value(), format_text("cannot list {}", path_));
  return names;
}

Result<UniqueFd> PrivateFolder::open_file(const std::string& name, int flags) const {
  return open_in(directory_, name, flags);
}

Result<void> PrivateFolder::publish(const UniqueFd& fd, const std::string& temporary_name,
                                    const std::string& name) const {
  if (Result<void> synced = sync_to_disk(fd, name); !synced) return synced;
  if (::renameat(directory_.get(), temporary_name.c_str(), directory_.get(), name.c_str()) != 0) {
    return fail_errno(errno, format_text("cannot rename {}", name));
  }
  return sync_to_disk(directory_, path_);
}

Result<void> PrivateFolder::remove(const std::string& name) const {
  if (::unlinkat(directory_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return fail_errno(errno, format_text("cannot remove {} in {}", name, path_));
}

void PrivateFolder::discard(const std::string& name) const noexcept {
  ::unlinkat(directory_.get(), name.c_str(), 0);
}

}  // namespace slipstream
