// PrivateFolder: files of ours in one directory, which belongs to one process at a time.
//
// A file is written under another name, brought to disk and then renamed: under its own name it is
// whole or absent, whenever the process or the machine dies. Files are readable by their owner
// only. They are reached through the directory that was locked, also if it is renamed meanwhile,
// and never through links.
//
// Threads: thread-safe; each name is written by one thread.
// Errors:  as of the system calls; kOverloaded when another process has the directory.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slipstream {

class PrivateFolder {
 public:
  // Makes it (0700) where it is absent, and locks the file of this name in it.
  [[nodiscard]] static Result<PrivateFolder> open(const std::string& path,
                                                  const std::string& lock_name);

  [[nodiscard]] Result<std::vector<std::string>> names() const;
  // openat(2). REQUIRES: the name has no '/'.
  [[nodiscard]] Result<UniqueFd> open_file(const std::string& name, int flags) const;
  // Gives a file its own name once all of it is on disk.
  [[nodiscard]] Result<void> publish(const UniqueFd& fd, const std::string& temporary_name,
                                     const std::string& name) const;
  // It may be absent.
  [[nodiscard]] Result<void> remove(const std::string& name) const;

  [[nodiscard]] int fd() const { return directory_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  PrivateFolder(std::string path, UniqueFd directory, UniqueFd lock);

  std::string path_;  // for messages: the directory may since have been renamed
  UniqueFd directory_;
  UniqueFd lock_;
};

}  // namespace slipstream
