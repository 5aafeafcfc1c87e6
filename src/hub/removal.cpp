#include "hub/removal.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include "base/file_lock.h"
#include "base/format.h"
#include "hub/gguf_choice.h"
#include "hub/installed.h"
#include "hub/partial_file.h"

namespace slipstream::hub {
namespace {

namespace fs = std::filesystem;

fs::path resolved(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  return error ? path : target;
}

bool is_within(const fs::path& folder, const fs::path& path) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

// The blob behind a link, or the file itself if a cache has no links. Nothing if the link leads out
// of the repository's blobs: someone has linked a file of their own, and that file is not the
// cache's to remove.
std::optional<fs::path> blob_of(const RepoCache& cache, const fs::path& file) {
  std::error_code error;
  fs::path blob = resolved(file);
  const bool is_link = fs::is_symlink(file, error);
  if (is_link && !is_within(resolved(cache.blobs()), blob)) return std::nullopt;
  return blob;
}

// The paths of the snapshot that belong to the named models, complete or not.
std::set<std::string> paths_meant(const Snapshot& snapshot, const ModelName& name,
                                  std::set<std::string>& names) {
  const std::vector<Variant> variants = find_variants(snapshot.paths);
  std::set<std::string> meant;
  const auto add = [&](const Variant& variant) {
    names.insert(format_text("{}:{}", name.repo_id(), variant.name()));
    for (const std::size_t idx : variant.parts) meant.insert(snapshot.paths[idx]);
  };
  if (name.quant.empty()) {
    std::ranges::for_each(variants, add);
  } else if (const auto choice = choose_variant(variants, name.quant, name.repo_id())) {
    add(variants[choice->variant_idx]);
  }
  return meant;
}

// While this lock is held, nobody downloads into the blob.
Result<FileLock> lock_blob(const RepoCache& cache, const fs::path& blob) {
  const std::string file = blob.filename().string();
  const fs::path path = cache.lock(file.substr(0, file.find('.')));
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  Result<std::optional<FileLock>> lock = FileLock::try_lock(path);
  if (!lock) return std::unexpected(std::move(lock.error()));
  if (!*lock) {
    return fail(Code::kOverloaded,
                format_text("{} is being downloaded: stop that first", blob.string()));
  }
  return std::move(**lock);
}

Result<void> remove_file(const fs::path& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return fail_errno(errno, format_text("cannot remove {}", path.string()));
}

// Removes empty directories, the innermost first.
void remove_empty_folders(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> folders{folder};
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_directory(error) && !it->is_symlink(error)) folders.push_back(it->path());
  }
  std::ranges::sort(folders, std::ranges::greater());
  for (const fs::path& path : folders) ::rmdir(path.c_str());  // fails for those that are not empty
}

}  // namespace

Result<RemovalPlan> plan_removal(const fs::path& cache_path, const ModelName& name) {
  const RepoCache cache(cache_path, name);
  RemovalPlan plan;
  std::set<std::string> names;
  std::set<fs::path> unwanted;
  std::set<fs::path> wanted;
  for (const Snapshot& snapshot : read_snapshots(cache)) {
    // A snapshot that is a link to a folder elsewhere is not the cache's either.
    if (!is_within(resolved(cache.folder()), resolved(snapshot.folder))) continue;
    const std::set<std::string> meant = paths_meant(snapshot, name, names);
    for (const std::string& path : snapshot.paths) {
      const fs::path file = snapshot.folder / path;
      if (meant.contains(path)) plan.links.push_back(file);
      std::optional<fs::path> blob = blob_of(cache, file);
      if (blob) (meant.contains(path) ? unwanted : wanted).insert(std::move(*blob));
    }
  }
  plan.names.assign(names.begin(), names.end());
  std::ranges::set_difference(unwanted, wanted, std::back_inserter(plan.blobs));
  if (name.quant.empty()) plan.blobs.append_range(find_leftovers(cache).files);
  for (const fs::path& blob : plan.blobs) plan.freed_bytes += allocated_bytes(blob);
  if (plan.links.empty() && plan.blobs.empty()) {
    return fail(Code::kNotFound,
                format_text("{} is not installed: slipstream list shows what is", name.text()));
  }
  return plan;
}

Result<void> carry_out(const RemovalPlan& plan, const fs::path& cache_path, const ModelName& name) {
  const RepoCache cache(cache_path, name);
  std::vector<FileLock> locks;
  std::set<std::string> locked;
  for (const fs::path& blob : plan.blobs) {
    const std::string file = blob.filename().string();
    if (!locked.insert(file.substr(0, file.find('.'))).second) continue;
    Result<FileLock> lock = lock_blob(cache, blob);
    if (!lock) return std::unexpected(std::move(lock.error()));
    locks.push_back(std::move(*lock));
  }
  // Links are removed first: a link without its blob would be worse than a blob without a link.
  for (const std::vector<fs::path>* paths : {&plan.links, &plan.blobs}) {
    for (const fs::path& path : *paths) {
      if (Result<void> removed = remove_file(path); !removed) return removed;
    }
  }
  remove_empty_folders(cache.snapshots());
  std::error_code error;
  if (!fs::exists(cache.snapshots(), error)) {
    ::unlink((cache.folder() / "refs" / "main").c_str());
    remove_empty_folders(cache.folder());
  }
  return {};
}

}  // namespace slipstream::hub
