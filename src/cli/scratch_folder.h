// ScratchFolder: a folder that is gone afterwards, with all that is in it. Log-probabilities of a
// model can be gigabytes.
//
// Threads: thread-compatible. Errors: create(): as of mkdtemp(3).
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"

namespace slipstream {

class ScratchFolder {
 public:
  // In a parent, which is made if it is not there.
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
