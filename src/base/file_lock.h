// FileLock: an exclusive right among all processes of this machine, such as to download a file or to
// write an index (flock; huggingface_hub locks in the same way). The lock ends with its holder, even
// if the process is killed.
//
// Threads: thread-compatible. Errors: those of the system calls.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slipstream {

class FileLock {
 public:
  // Returns nullopt while another process has the lock. Creates the file if necessary.
  [[nodiscard]] static Result<std::optional<FileLock>> try_lock(const std::filesystem::path& path);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace slipstream
