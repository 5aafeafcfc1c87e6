// Removes installed models: their links in every snapshot, and the blobs that no other link needs.
//
// A plan is made first, for the user to confirm, and then carried out. What other programs keep in
// the same repository (a README, another quant) stays. So does a file outside the cache that someone
// has linked into a snapshot: only the link is removed. Without a quant, all models of the
// repository are removed, and also slipstream's interrupted downloads.
//
// Threads: thread-safe.
// Errors:  kNotFound if there is nothing of that name; kOverloaded while it is being downloaded;
//          those of the system calls.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/cache_layout.h"
#include "hub/model_name.h"

namespace slipstream::hub {

struct RemovalPlan {
  std::vector<std::string> names;  // org/repo:quant
  std::vector<std::filesystem::path> links;
  std::vector<std::filesystem::path> blobs;  // and the remains of downloads
  std::uint64_t freed_bytes = 0;             // on the disk
};

[[nodiscard]] Result<RemovalPlan> plan_removal(const std::filesystem::path& cache,
                                               const ModelName& name);
[[nodiscard]] Result<void> carry_out(const RemovalPlan& plan, const std::filesystem::path& cache,
                                     const ModelName& name);

}  // namespace slipstream::hub
