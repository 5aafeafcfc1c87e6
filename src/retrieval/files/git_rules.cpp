#include "retrieval/files/git_rules.h"

#include <git2.h>

#include "base/format.h"

namespace slipstream {
namespace {

// libgit2 counts its users.
void start_libgit2() {
  static const bool is_started = [] {
    git_libgit2_init();
    // Whose repository it is does not matter: nothing of it is run.
    git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    return true;
  }();
  (void)is_started;
}

std::string complaint() {
  const git_error* error = git_error_last();
  return error == nullptr ? "no reason given" : error->message;
}

}  // namespace

void GitRules::FreeRepository::operator()(git_repository* repository) const {
  git_repository_free(repository);
}
void GitRules::FreeIndex::operator()(git_index* index) const { git_index_free(index); }

Result<std::optional<GitRules>> GitRules::find(const std::filesystem::path& folder) {
  start_libgit2();
  git_repository* repository = nullptr;
  const int status = git_repository_open_ext(&repository, folder.c_str(), 0, nullptr);
  if (status == GIT_ENOTFOUND) return std::nullopt;
  if (status != 0) {
    return fail(Code::kCorrupt, format_text("cannot read the Git repository of {}: {}",
                                            folder.string(), complaint()));
  }
  GitRules rules;
  rules.repository_.reset(repository);
  const char* work_tree = git_repository_workdir(repository);
  if (work_tree == nullptr) return std::nullopt;  // a bare repository has no files
  rules.work_tree_ = work_tree;
  git_index* index = nullptr;
  if (git_repository_index(&index, repository) != 0) {
    return fail(Code::kCorrupt, format_text("cannot read the index of the Git repository {}: {}",
                                            rules.work_tree_, complaint()));
  }
  rules.index_.reset(index);
  return rules;
}

bool GitRules::is_ignored(const std::string& path) {
  int ignored = 0;
  return git_ignore_path_is_ignored(&ignored, repository_.get(), path.c_str()) == 0 && ignored != 0;
}

bool GitRules::has_file(const std::string& path) {
  if (git_index_get_bypath(index_.get(), path.c_str(), 0) != nullptr) return true;
  return !is_ignored(path);
}

bool GitRules::has_folder(const std::string& path) {
  const std::string below = path + "/";
  std::size_t at = 0;
  if (git_index_find_prefix(&at, index_.get(), below.c_str()) == 0) return true;
  return !is_ignored(below);
}

}  // namespace slipstream
