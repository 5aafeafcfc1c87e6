#include "retrieval/files/file_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "base/format.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "base/utf8.h"
#include "retrieval/files/git_rules.h"
#include "retrieval/files/secrets.h"
#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

// Written by package managers, or for other programs. In a repository these are mostly ignored by
// its own rules.
constexpr auto kForeignFolders =
    std::to_array<std::string_view>({".git",          ".hg",           ".svn",
                                     ".jj",           "node_modules",  "bower_components",
                                     ".venv",         "venv",          "__pycache__",
                                     "site-packages", ".tox",          ".nox",
                                     ".mypy_cache",   ".pytest_cache", ".ruff_cache",
                                     ".cache",        ".gradle",       ".idea",
                                     ".vs",           ".next",         ".terraform"});

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

class Walk {
 public:
  Walk(const std::filesystem::path& root, const std::stop_token& stop)
      : root_(root.string()), stop_(stop) {}

  Result<FileList> run() {
    Result<UniqueFd> top = open_file(root_, O_RDONLY | O_DIRECTORY);
    if (!top) return std::unexpected(top.error());
    Result<std::optional<GitRules>> rules = GitRules::find(root_);
    if (!rules) return std::unexpected(rules.error());
    std::optional<Repository> repository;
    if (*rules) repository = repository_of(std::move(**rules), "");
    if (Result<void> read = read_folder(std::move(*top), "", repository, 0); !read) {
      return std::unexpected(read.error());
    }
    std::ranges::sort(list_.files, {}, &ListedFile::path);
    return std::move(list_);
  }

 private:
  // The rules that hold in a folder, and how a path of the project is called in them.
  struct Repository {
    std::shared_ptr<GitRules> rules;  // shared by the folders of the repository
    std::string prefix;               // before paths relative to the root ...
    std::size_t n_skipped = 0;        // ... of which so many bytes are left out
    [[nodiscard]] std::string name_of(const std::string& path) const {
      return prefix + path.substr(n_skipped);
    }
  };

  // folder: relative to the root, with a slash at the end unless it is the root.
  [[nodiscard]] Repository repository_of(GitRules rules, const std::string& folder) const {
    const std::string absolute = root_ + "/" + folder;
    const std::string& work_tree = rules.work_tree();
    Repository repository{.rules = nullptr, .prefix = {}, .n_skipped = folder.size()};
    // The project may be a folder within the repository.
    if (absolute.starts_with(work_tree)) repository.prefix = absolute.substr(work_tree.size());
    repository.rules = std::make_shared<GitRules>(std::move(rules));
    return repository;
  }

  Result<void> read_folder(UniqueFd fd, const std::string& path,
                           std::optional<Repository> repository, std::size_t depth) {
    if (stop_.stop_requested()) return fail(Code::kCancelled, "stopped");
    if (depth > kRetrievalLimits.folder_depth_max) {
      ++list_.n_unreadable;
      return {};
    }
    if (::faccessat(fd.get(), "CACHEDIR.TAG", F_OK, AT_SYMLINK_NOFOLLOW) == 0) return {};
    if (depth > 0 && ::faccessat(fd.get(), ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
      Result<std::optional<GitRules>> rules = GitRules::find(root_ + "/" + path);
      if (rules && *rules) repository = repository_of(std::move(**rules), path);
    }
    const Folder folder(fdopendir(fd.get()));
    if (folder == nullptr) {
      ++list_.n_unreadable;
      return {};
    }
    (void)fd.release();
    list_.folders.push_back(path);
    while (const dirent* entry = readdir(folder.get())) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (Result<void> seen = see(dirfd(folder.get()), path, name, repository, depth); !seen) {
        return seen;
      }
    }
    return {};
  }

  Result<void> see(int folder, const std::string& folder_path, const std::string& name,
                   const std::optional<Repository>& repository, std::size_t depth) {
    struct stat status{};
    if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return {};  // it is gone
    const bool is_folder = S_ISDIR(status.st_mode);
    if (!is_folder && !S_ISREG(status.st_mode)) return {};
    const std::string path = folder_path + name;
    if (is_folder ? is_secret_folder(name) : is_secret_file(name)) {
      ++list_.n_secret;
      return {};
    }
    if (path.size() > kRetrievalLimits.path_bytes_max || !is_utf8(name)) {
      ++list_.n_unnameable;
      return {};
    }
    if (is_folder) {
      if (std::ranges::contains(kForeignFolders, name)) return {};
      if (repository && !repository->rules->has_folder(repository->name_of(path))) return {};
      Result<UniqueFd> below =
          UniqueFd(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!*below) {
        ++list_.n_unreadable;
        return {};
      }
      return read_folder(std::move(*below), path + "/", repository, depth + 1);
    }
    if (repository && !repository->rules->has_file(repository->name_of(path))) return {};
    if (list_.files.size() >= kRetrievalLimits.files_of_project_max) {
      return fail(Code::kOverloaded, format_text("{} has more than {} files: name folders in it",
                                                 root_, kRetrievalLimits.files_of_project_max));
    }
    list_.files.push_back({.path = path, .stamp = stamp_of(status)});
    return {};
  }

  const std::string root_;
  const std::stop_token stop_;
  FileList list_;
};

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileStamp stamp_of(const struct stat& status) {
  return {.n_bytes = status.st_size,
          .modified_ns = nanoseconds(status.st_mtim),
          .changed_ns = nanoseconds(status.st_ctim),
          .inode = static_cast<std::int64_t>(status.st_ino)};
}

Result<FileList> list_files(const std::filesystem::path& root, const std::stop_token& stop) {
  return Walk(root, stop).run();
}

}  // namespace slipstream
