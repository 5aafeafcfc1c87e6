// RepoCache: where a repository's files are in the cache of huggingface_hub and llama.cpp.
//
//   models--ORG--REPO/blobs/HASH                      the content
//   models--ORG--REPO/snapshots/COMMIT/PATH           a link to ../../blobs/HASH
//   models--ORG--REPO/refs/main                       the newest COMMIT when it was last checked
//   .locks/models--ORG--REPO/HASH.lock                held by whoever downloads HASH
//
// A download also has blobs/HASH.slipstream.incomplete, which has its full size from the start, and
// HASH.slipstream.chunks. HASH.incomplete is not used: it belongs to huggingface_hub, which
// would take a file of full size for a complete one.
//
// Threads: thread-safe; the file system is the state. Errors: those of the system calls.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/listing.h"
#include "hub/model_name.h"

namespace slipstream::hub {

inline constexpr std::string_view kIncompleteSuffix = ".slipstream.incomplete";
inline constexpr std::string_view kChunksSuffix = ".slipstream.chunks";

// "models--ORG--REPO", and back; nullopt for any other directory name.
[[nodiscard]] std::string folder_name(const ModelName& model);
[[nodiscard]] std::optional<ModelName> model_of_folder(std::string_view folder_name);

class RepoCache {
 public:
  RepoCache(std::filesystem::path cache, const ModelName& model);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] std::filesystem::path blobs() const { return folder_ / "blobs"; }
  [[nodiscard]] std::filesystem::path snapshots() const { return folder_ / "snapshots"; }
  [[nodiscard]] std::filesystem::path blob(const ContentHash& hash) const {
    return blobs() / hash.hex;
  }
  [[nodiscard]] std::filesystem::path incomplete(const ContentHash& hash) const {
    return blobs() / (hash.hex + std::string(kIncompleteSuffix));
  }
  [[nodiscard]] std::filesystem::path chunks(const ContentHash& hash) const {
    return blobs() / (hash.hex + std::string(kChunksSuffix));
  }
  [[nodiscard]] std::filesystem::path lock(std::string_view hash) const;
  // The place of the commit's file. REQUIRES: `path` is from a listing, so that it is safe.
  [[nodiscard]] std::filesystem::path snapshot(std::string_view commit,
                                               std::string_view path) const {
    return snapshots() / commit / path;
  }

  // Creates the directories that a download needs.
  [[nodiscard]] Result<void> make_folders() const;
  // Makes snapshot(commit, path) a link to the blob, atomically replacing what was there.
  [[nodiscard]] Result<void> link(std::string_view commit, std::string_view path,
                                  const ContentHash& hash) const;
  // The commit in refs/main; empty if there is none.
  [[nodiscard]] std::string main_commit() const;
  [[nodiscard]] Result<void> set_main_commit(std::string_view commit) const;

 private:
  std::filesystem::path cache_;
  std::filesystem::path folder_;
};

}  // namespace slipstream::hub
