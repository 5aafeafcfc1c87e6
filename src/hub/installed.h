// What models the cache holds, whoever downloaded them.
//
// A model is installed when a snapshot of its repository has links to all its parts and their blobs
// are there. Of several snapshots with the same file the one of refs/main counts, then the newest.
//
// Threads: thread-safe; the file system is the state.
// Errors:  kNotFound with what to do; as of the system calls where the cache cannot be read. A
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
  std::vector<std::filesystem::path> files;  // in the snapshot; of several parts the first first
  std::uint64_t n_bytes = 0;
  // When a blob of it was last read, as far as the file system keeps that.
  std::chrono::sys_seconds last_used;
};

// By name.
[[nodiscard]] Result<std::vector<InstalledModel>> list_installed(
    const std::filesystem::path& cache);

// name.quant empty: as pull() would choose, of those that are installed.
[[nodiscard]] Result<InstalledModel> find_installed(const std::filesystem::path& cache,
                                                    const ModelName& name);

// A snapshot's files that can be read, as paths within it; of all snapshots, refs/main first.
struct Snapshot {
  std::string commit;
  std::filesystem::path folder;
  std::vector<std::string> paths;
};
[[nodiscard]] std::vector<Snapshot> read_snapshots(const RepoCache& cache);

// Downloads of ours that have not ended yet.
struct Leftovers {
  std::vector<std::filesystem::path> files;
  std::uint64_t n_bytes = 0;  // that they take on the disk
};
[[nodiscard]] Leftovers find_leftovers(const RepoCache& cache);
[[nodiscard]] std::vector<ModelName> list_repos(const std::filesystem::path& cache);

}  // namespace slipstream::hub
