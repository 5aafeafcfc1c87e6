#include "hub/installed.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/format.h"
#include "hub/partial_file.h"

namespace slipstream::hub {
namespace {

namespace fs = std::filesystem;

// The entries of a directory, sorted by name; empty if it cannot be read.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(*it);
  }
  std::ranges::sort(entries);
  return entries;
}

std::vector<std::string> files_within(const fs::path& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code file_error;  // a link whose blob is gone is not a file
    if (it->is_regular_file(file_error)) {
      paths.push_back(it->path().lexically_relative(folder).generic_string());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

fs::file_time_type changed_at(const fs::path& path) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(path, error);
  return error ? fs::file_time_type::min() : time;
}

InstalledModel describe(const ModelName& repo, const Snapshot& snapshot, const Variant& variant) {
  InstalledModel model{
      .name = repo, .commit = snapshot.commit, .files = {}, .n_bytes = 0, .last_used = {}};
  model.name.quant = variant.name();
  for (const std::size_t idx : variant.parts) {
    model.files.push_back(snapshot.folder / snapshot.paths[idx]);
    struct stat status{};
    if (::stat(model.files.back().c_str(), &status) != 0) continue;
    model.n_bytes += static_cast<std::uint64_t>(status.st_size);
    model.last_used = std::max(
        model.last_used, std::chrono::sys_seconds(std::chrono::seconds(status.st_atim.tv_sec)));
  }
  return model;
}

// The models of one repository, each stem once.
std::vector<InstalledModel> models_of(const fs::path& cache, const ModelName& repo) {
  std::vector<InstalledModel> models;
  std::set<std::string> seen;
  for (const Snapshot& snapshot : read_snapshots(RepoCache(cache, repo))) {
    for (const Variant& variant : find_variants(snapshot.paths)) {
      if (!check_complete(variant) || !seen.insert(variant.stem).second) continue;
      models.push_back(describe(repo, snapshot, variant));
    }
  }
  return models;
}

}  // namespace

std::vector<Snapshot> read_snapshots(const RepoCache& cache) {
  std::vector<Snapshot> snapshots;
  for (const fs::directory_entry& entry : entries_of(cache.snapshots())) {
    snapshots.push_back({.commit = entry.path().filename().string(),
                         .folder = entry.path(),
                         .paths = files_within(entry.path())});
  }
  const std::string main_commit = cache.main_commit();
  std::ranges::stable_sort(snapshots, [&](const Snapshot& a, const Snapshot& b) {
    if ((a.commit == main_commit) != (b.commit == main_commit)) return a.commit == main_commit;
    return changed_at(a.folder) > changed_at(b.folder);
  });
  return snapshots;
}

std::vector<ModelName> list_repos(const fs::path& cache) {
  std::vector<ModelName> repos;
  for (const fs::directory_entry& entry : entries_of(cache)) {
    if (auto repo = model_of_folder(entry.path().filename().string())) {
      repos.push_back(std::move(*repo));
    }
  }
  return repos;
}

Result<std::vector<InstalledModel>> list_installed(const fs::path& cache) {
  std::error_code error;
  if (fs::directory_iterator(cache, error); error && error.value() != ENOENT) {
    return fail_errno(error.value(), format_text("cannot read {}", cache.string()));
  }
  std::vector<InstalledModel> models;
  for (const ModelName& repo : list_repos(cache)) models.append_range(models_of(cache, repo));
  std::ranges::stable_sort(models, {}, [](const InstalledModel& m) { return m.name.text(); });
  return models;
}

Result<InstalledModel> find_installed(const fs::path& cache, const ModelName& name) {
  const std::vector<InstalledModel> models = models_of(cache, name);
  const auto not_installed = [&](std::string_view what_is_there) {
    return fail(Code::kNotFound, format_text("{} is not installed{}: slipstream pull {}",
                                             name.text(), what_is_there, name.text()));
  };
  if (models.empty()) return not_installed("");
  std::vector<std::string> paths;
  std::vector<std::size_t> owners;
  for (std::size_t i = 0; i < models.size(); ++i) {
    for (const fs::path& file : models[i].files) {
      // The path within its snapshot, whichever that is.
      const fs::path folder = RepoCache(cache, name).snapshots() / models[i].commit;
      paths.push_back(file.lexically_relative(folder).generic_string());
      owners.push_back(i);
    }
  }
  const std::vector<Variant> variants = find_variants(paths);
  const Result<VariantChoice> choice = choose_variant(variants, name.quant, name.repo_id());
  if (!choice) {
    std::string there;
    for (const InstalledModel& model : models) there += " " + model.name.quant;
    return not_installed(format_text(" (installed are:{})", there));
  }
  return models[owners[variants[choice->variant_idx].parts.front()]];
}

Leftovers find_leftovers(const RepoCache& cache) {
  Leftovers leftovers;
  for (const fs::directory_entry& entry : entries_of(cache.blobs())) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(kIncompleteSuffix) && !name.ends_with(kChunksSuffix)) continue;
    leftovers.files.push_back(entry.path());
    leftovers.n_bytes += allocated_bytes(entry.path());
  }
  return leftovers;
}

}  // namespace slipstream::hub
