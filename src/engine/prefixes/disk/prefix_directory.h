// PrefixDirectory: prefix files in one directory, which processes share, on one machine or on
// several through a network file system.
//
// Everybody reads at any time. Who writes or makes room takes a turn, so that a budget holds for
// all of them together and what a writer that died left behind can be told from a file in work.
//
// Under its own name a file is complete or absent, and only the owner can read it
// (base/private_folder.h): it holds what users asked. Files with other names are left alone.
//
// Threads: thread-safe; one thread creates, publishes and discards each id.
// Errors:  as of the system calls; kOverloaded if another process keeps its turn for too long.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
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

  // Nobody else writes or makes room until it is destroyed, or the process dies.
  class Turn {
    friend PrefixDirectory;
    explicit Turn(UniqueFd lock) : lock_(std::move(lock)) {}
    UniqueFd lock_;
  };

  // Creates it (0700) if absent.
  [[nodiscard]] static Result<PrefixDirectory> open(const std::string& path);

  // Waits for a turn and removes what a writer that died left behind.
  [[nodiscard]] Result<Turn> take_turn(std::chrono::milliseconds time_max,
                                       const std::stop_token& stop = {}) const;

  // Changes when a file appears or disappears; the clock may be another machine's.
  [[nodiscard]] Result<std::int64_t> changed_at_ns() const;
  // In no order, without a look at the files.
  [[nodiscard]] Result<std::vector<EntryId>> ids() const;
  // Least recently used first.
  [[nodiscard]] Result<std::vector<File>> list() const;
  [[nodiscard]] Result<std::uint64_t> file_bytes(EntryId id) const;
  [[nodiscard]] Result<UniqueFd> open_file(EntryId id) const;
  [[nodiscard]] Result<void> remove(EntryId id) const;
  // Stores the time of use as the file's modification time, so that a later process knows it.
  void touch(EntryId id, std::chrono::system_clock::time_point used_at) const;

  // Creates an empty file under a temporary name. For use in a turn.
  [[nodiscard]] Result<UniqueFd> create(EntryId id) const;
  // Renames the file to its own name once all of it is on disk.
  [[nodiscard]] Result<void> publish(EntryId id, const UniqueFd& fd) const;
  // For use after create() or publish() failed.
  void discard(EntryId id) const;

  // Free space minus the disk's reserve, which is the smaller of 5 % and reserve_bytes_max.
  [[nodiscard]] Result<std::uint64_t> spare_bytes(std::uint64_t reserve_bytes_max) const;

  [[nodiscard]] const std::string& path() const { return folder_.path(); }

 private:
  explicit PrefixDirectory(PrivateFolder folder);

  PrivateFolder folder_;
};

}  // namespace slipstream
