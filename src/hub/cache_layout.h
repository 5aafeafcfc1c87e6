// RepoCache: where the files of one repository lie in the cache that huggingface_hub defines and
// llama.cpp shares.
//
//   models--ORG--REPO/blobs/HASH                      the content
//   models--ORG--REPO/snapshots/COMMIT/PATH           a link to ../../blobs/HASH
//   models--ORG--REPO/refs/main                       the COMMIT that was newest at the last look
//   .locks/models--ORG--REPO/HASH.lock                held by who downloads HASH
//
// Beside them ours while a download lasts: blobs/HASH.slipstream.incomplete, which has its full
// size from the start, and HASH.slipstream.chunks. Not HASH.incomplete, which is
// huggingface_hub's: it would take a file of full size for a whole one.
//
// Threads: thread-safe; the file system is the state. Errors: as of the system calls.
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

// "models--ORG--REPO", and back; nothing for the name of another directory.
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
  // Where the commit's file is found. `path` as of a listing: safe.
  [[nodiscard]] std::filesystem::path snapshot(std::string_view commit,
                                               std::string_view path) const {
    return snapshots() / commit / path;
  }

  // The directories that a download needs.
  [[nodiscard]] Result<void> make_folders() const;
  // Makes snapshot(commit, path) a link to the blob; at once, whatever was there before.
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
