#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "base/format.h"

namespace slipstream {

Result<std::optional<FileLock>> FileLock::try_lock(const std::filesystem::path& path) {
  Result<UniqueFd> fd = open_file(path.string(), O_RDWR | O_CREAT);
  if (!fd) return std::unexpected(std::move(fd.error()));
  if (::flock(fd->get(), LOCK_EX | LOCK_NB) == 0) return FileLock(std::move(*fd));
  if (errno == EWOULDBLOCK) return std::nullopt;
  return fail_errno(errno, format_text("cannot lock {}", path.string()));
}

}  // namespace slipstream
