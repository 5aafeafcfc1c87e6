// FileLock: the exclusive right to download one file, among all processes of this machine that
// share the cache. huggingface_hub locks the same file in the same way (flock). The lock ends with
// its holder, even if the process is killed.
//
// Threads: thread-compatible. Errors: those of the system calls.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slipstream::hub {

class FileLock {
 public:
  // Returns nullopt while another process has the lock. Creates the file if necessary.
  [[nodiscard]] static Result<std::optional<FileLock>> try_lock(const std::filesystem::path& path);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace slipstream::hub
