// FileLock: sole right to download one file, among all processes of this machine that share the
// cache; huggingface_hub locks the same file in the same way (flock). Ends with its holder, however
// that ends.
//
// Threads: thread-compatible. Errors: as of the system calls.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slipstream::hub {

class FileLock {
 public:
  // Nothing while somebody else has it. The file is made if need be.
  [[nodiscard]] static Result<std::optional<FileLock>> try_lock(const std::filesystem::path& path);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace slipstream::hub
