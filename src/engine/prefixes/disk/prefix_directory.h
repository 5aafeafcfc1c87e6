// PrefixDirectory: the files of prefixes in one directory, which belongs to one process at a time.
//
// A file is whole or absent (base/private_folder.h) and hidden from others, for it holds what
// people asked. Names that are not ours are left alone.
//
// Threads: thread-safe; each id is created, published and discarded by one thread.
// Errors:  as of the system calls; kOverloaded when another process has the directory.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/private_folder.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/prefixes/disk/prefix_index.h"

namespace slipstream {

class PrefixDirectory {
 public:
  struct File {
    EntryId id;
    std::uint64_t file_bytes;
    std::int64_t used_at_ns;
  };

  // Makes it (0700) where it is absent, locks it, and removes what a writer that died left behind.
  [[nodiscard]] static Result<PrefixDirectory> open(const std::string& path);

  // Those used longest ago first.
  [[nodiscard]] Result<std::vector<File>> list() const;
  [[nodiscard]] Result<UniqueFd> open_file(EntryId id) const;
  [[nodiscard]] Result<void> remove(EntryId id) const;
  // When the file was used: remembered as its modification time, so that a later process knows.
  void touch(EntryId id, std::chrono::system_clock::time_point used_at) const;

  // Empty, under a temporary name.
  [[nodiscard]] Result<UniqueFd> create(EntryId id) const;
  // Gives it its own name once all of it is on disk.
  [[nodiscard]] Result<void> publish(EntryId id, const UniqueFd& fd) const;
  // After create() or publish() failed.
  void discard(EntryId id) const;

  // What the disk can take without touching its reserve: the smaller of 5 % and reserve_bytes_max.
  [[nodiscard]] Result<std::uint64_t> spare_bytes(std::uint64_t reserve_bytes_max) const;

  [[nodiscard]] const std::string& path() const { return folder_.path(); }

 private:
  explicit PrefixDirectory(PrivateFolder folder);

  PrivateFolder folder_;
};

}  // namespace slipstream
