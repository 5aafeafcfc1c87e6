// GitRules: which files of a Git repository are part of it: those that git tracks, and those that it
// would offer to add.
//
// libgit2 reads the repository, not the program git: a repository's own settings can make git run
// other programs, and a folder may come from anybody.
//
// Threads: thread-compatible.
// Errors:  open(): kCorrupt for a repository that cannot be read.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

struct git_repository;
struct git_index;

namespace slipstream {

class GitRules {
 public:
  // The repository that the folder is in; nullopt if it is in none.
  [[nodiscard]] static Result<std::optional<GitRules>> find(const std::filesystem::path& folder);

  // The folder of its files, with a slash at the end.
  [[nodiscard]] const std::string& work_tree() const { return work_tree_; }
  // Paths are relative to the work tree.
  [[nodiscard]] bool has_file(const std::string& path);
  [[nodiscard]] bool has_folder(const std::string& path);

 private:
  struct FreeRepository {
    void operator()(git_repository* repository) const;
  };
  struct FreeIndex {
    void operator()(git_index* index) const;
  };
  GitRules() = default;
  [[nodiscard]] bool is_ignored(const std::string& path);

  std::unique_ptr<git_repository, FreeRepository> repository_;
  std::unique_ptr<git_index, FreeIndex> index_;
  std::string work_tree_;
};

}  // namespace slipstream
