// The models in the cache, whoever downloaded them.
//
// A model is installed if a snapshot of its repository has links to all its parts and their blobs
// exist. If several snapshots have the same file, that of refs/main counts, then the newest.
//
// Threads: thread-safe; the file system is the state.
// Errors:  kNotFound with what to do; those of the system calls if the cache cannot be read. A
//          cache that does not exist is empty.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/cache_layout.h"
#include "hub/gguf_choice.h"
#include "hub/model_name.h"

namespace slipstream::hub {

struct InstalledModel {
  ModelName name;  // its quant is set
  std::string commit;
  std::vector<std::filesystem::path> files;  // in the snapshot, in the order of the parts
  std::uint64_t n_bytes = 0;
  // When a blob of it was last read, if the file system records that.
  std::chrono::sys_seconds last_used;
};

// Sorted by name.
[[nodiscard]] Result<std::vector<InstalledModel>> list_installed(
    const std::filesystem::path& cache);

// If name.quant is empty, chooses among the installed models as pull() would.
[[nodiscard]] Result<InstalledModel> find_installed(const std::filesystem::path& cache,
                                                    const ModelName& name);

// The readable files of a snapshot, as paths within it. Of all snapshots, refs/main comes first.
struct Snapshot {
  std::string commit;
  std::filesystem::path folder;
  std::vector<std::string> paths;
};
[[nodiscard]] std::vector<Snapshot> read_snapshots(const RepoCache& cache);

// Slipstream's downloads that have not ended yet.
struct Leftovers {
  std::vector<std::filesystem::path> files;
  std::uint64_t n_bytes = 0;  // that they take on the disk
};
[[nodiscard]] Leftovers find_leftovers(const RepoCache& cache);
[[nodiscard]] std::vector<ModelName> list_repos(const std::filesystem::path& cache);

}  // namespace slipstream::hub
