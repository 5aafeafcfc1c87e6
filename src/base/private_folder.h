// PrivateFolder: a directory of files that belongs to one process at a time, or that processes of
// one user share.
//
// A file is written under a temporary name, synced and then renamed: under its own name it is
// complete or absent, even if the process or the machine dies. Only the owner can read the files.
// They are opened through the directory, even if it is renamed meanwhile, and never through
// links.
//
// Threads: thread-safe; one thread writes each name.
// Errors:  as of the system calls; kOverloaded if another process has the directory or the lock.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slipstream {

class PrivateFolder {
 public:
  // Creates the directory (0700) if it is absent, and locks a file in it.
  [[nodiscard]] static Result<PrivateFolder> open(const std::string& path,
                                                  const std::string& lock_name);
  // The same without a lock. Other processes may have the directory open, on other machines too.
  [[nodiscard]] static Result<PrivateFolder> open_shared(const std::string& path);

  // Locks a file in it until the descriptor is closed, or the process dies.
  [[nodiscard]] Result<UniqueFd> try_lock(const std::string& lock_name) const;
  [[nodiscard]] Result<std::vector<std::string>> names() const;
  // openat(2). REQUIRES: the name has no '/'.
  [[nodiscard]] Result<UniqueFd> open_file(const std::string& name, int flags) const;
  // Renames the file to its own name once all of it is on disk.
  [[nodiscard]] Result<void> publish(const UniqueFd& fd, const std::string& temporary_name,
                                     const std::string& name) const;
  // No error if the file is absent.
  [[nodiscard]] Result<void> remove(const std::string& name) const;
  // The same for a file that does no harm if it stays.
  void discard(const std::string& name) const noexcept;

  [[nodiscard]] int fd() const { return directory_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  PrivateFolder(std::string path, UniqueFd directory);

  std::string path_;  // for messages: the directory may have been renamed since
  UniqueFd directory_;
  UniqueFd lock_;  // none if it is shared
};

}  // namespace slipstream
