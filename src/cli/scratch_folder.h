// ScratchFolder: a folder that is removed afterwards with everything in it. Log-probabilities of a
// model can take gigabytes.
//
// Threads: thread-compatible. Errors: create(): those of mkdtemp(3).
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"

namespace slipstream {

class ScratchFolder {
 public:
  // Creates the folder in `parent`, which is created if it is missing.
  static Result<ScratchFolder> create(const std::filesystem::path& parent);
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder(const ScratchFolder&) = delete;
  ~ScratchFolder();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace slipstream
