// DiskTier: keeps idle prefixes of the KV cache as files that survive a restart. Prefixes from
// memory, the first tier, are written here and read back when a request needs them again.
//
// Processes share a directory, and what one of them wrote another finds within a second: replicas
// of a server on one file system, or a server and its successor.
//
// The files together never exceed bytes_max and leave the disk's reserve free (DiskLimits); the
// least recently used are deleted first, whoever wrote them. A damaged file is deleted when it is
// read. A disk that is full, fails or is gone costs only the prefixes to be written; the log gets
// one line.
//
// Threads: thread-safe. find(), wants() and write() never wait for the disk: a thread writes.
// Errors:  open: as of file operations.
//          read: kNotFound (deleted meanwhile) or kCorrupt; both are misses, nothing to repair.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"
#include "base/mutex.h"
#include "base/result.h"
#include "engine/prefixes/disk/disk_limits.h"
#include "engine/prefixes/disk/prefix_directory.h"
#include "engine/prefixes/disk/prefix_file.h"
#include "engine/prefixes/disk/prefix_index.h"
#include "engine/request.h"

namespace slipstream {

struct DiskTierStats {
  std::uint64_t n_files = 0;  // now, including those of other fingerprints
  std::uint64_t bytes = 0;    // now, of these files
  // Since the start:
  std::uint64_t n_writes = 0;
  std::uint64_t n_write_failures = 0;
  std::uint64_t n_reads = 0;
  std::uint64_t n_hits = 0;  // reads that returned a state
  std::uint64_t n_corrupt = 0;
  std::uint64_t n_evicted = 0;
};

class DiskTier {
 public:
  // Reads the heads of all files. Files of another fingerprint or version are never found, but they
  // count towards the limits and are deleted when they are the least recently used.
  [[nodiscard]] static Result<std::unique_ptr<DiskTier>> open(
      const std::string& directory, std::uint64_t bytes_max, const Fingerprint& fingerprint,
      const DiskLimits& limits = kDiskLimits);
  // Finishes the file being written and drops what waits. Call flush() first to keep it.
  ~DiskTier();
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;

  // The stored prefix that shares most tokens with these. Does not count as a use.
  [[nodiscard]] DiskMatch find(std::uint64_t salt, std::span<const Token> tokens) const;
  // The whole state of a match, valid for its n_stored tokens. Blocks while the disk reads.
  [[nodiscard]] Result<std::vector<std::byte>> read(EntryId id);

  // Whether write() would accept it now; ask before creating a large state. False if this prefix or
  // a longer one is stored (which then counts as used now) or waits already, if too much waits, or
  // if it is too large.
  [[nodiscard]] bool wants(std::uint64_t salt, std::span<const Token> tokens,
                           std::uint64_t state_bytes);
  // Drops the prefix and returns false where wants() would.
  bool write(std::uint64_t salt, std::vector<Token> tokens, std::vector<std::byte> state);
  // Waits until everything that write() accepted is on disk or has failed.
  void flush();

  [[nodiscard]] DiskTierStats stats() const;

 private:
  struct Job {
    PrefixHead head;
    std::vector<std::byte> state;
  };
  // What waits or is being written, in the order of the queue.
  struct Pending {
    std::uint64_t salt;
    std::vector<Token> tokens;
    std::uint64_t state_bytes;
  };

  DiskTier(PrefixDirectory directory, std::uint64_t bytes_max, const Fingerprint& fingerprint,
           const DiskLimits& limits);
  [[nodiscard]] Result<void> scan();
  void look();
  [[nodiscard]] Result<void> look_at_all();
  void look_at(EntryId id);
  [[nodiscard]] Result<PrefixEntry> head_of(EntryId id) const;

  [[nodiscard]] bool takes(std::uint64_t salt, std::span<const Token> tokens,
                           std::uint64_t state_bytes) const SLIP_TSA(requires_capability(mutex_));
  [[nodiscard]] bool takes_or_uses(std::uint64_t salt, std::span<const Token> tokens,
                                   std::uint64_t state_bytes) SLIP_TSA(requires_capability(mutex_));

  void run(const std::stop_token& stop);
  void work_off(const Job& job, const std::stop_token& stop);
  [[nodiscard]] Result<void> store(const Job& job, const std::stop_token& stop);
  [[nodiscard]] EntryId new_id();
  void remember_uses();
  [[nodiscard]] Result<std::uint64_t> write_file(EntryId id, const Job& job);
  [[nodiscard]] Result<void> make_room(std::uint64_t n_written, std::uint64_t n_more);
  [[nodiscard]] bool evict_oldest();
  void report(const Result<void>& stored);

  [[nodiscard]] Result<std::vector<std::byte>> read_file(EntryId id) const;
  void forget(EntryId id, const Error& why);
  void remove(EntryId id) const;

  const PrefixDirectory directory_;
  const std::uint64_t bytes_max_;
  const Fingerprint fingerprint_;
  const DiskLimits limits_;

  mutable Mutex mutex_;
  PrefixIndex index_ SLIP_GUARDED_BY(mutex_);
  std::deque<Pending> pending_ SLIP_GUARDED_BY(mutex_);
  std::uint64_t pending_bytes_ SLIP_GUARDED_BY(mutex_) = 0;
  // Uses without a read. The writing thread stores them with the files.
  std::map<EntryId, std::chrono::system_clock::time_point> used_at_ SLIP_GUARDED_BY(mutex_);
  DiskTierStats stats_ SLIP_GUARDED_BY(mutex_);
  bool is_failing_ SLIP_GUARDED_BY(mutex_) = false;
  std::condition_variable_any nothing_pending_;

  // Used by scan(), then by the writing thread only:
  std::mt19937_64 random_{std::random_device{}()};
  std::int64_t changed_at_ns_ = 0;  // when it was looked at
  bool is_settled_ = false;         // it had not changed since the look before that
  std::optional<std::deque<PrefixDirectory::File>> oldest_;  // in this turn, if somebody asked

  BoundedQueue<Job> queue_;
  std::jthread writer_;  // last: it uses all members above
};

}  // namespace slipstream
