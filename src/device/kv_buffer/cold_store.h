// ColdStore: what the caches of one device share to keep cold chunks in files: the limit of memory,
// the readers, the counters. ColdFile: the file of one buffer's caches. It has no name, so that
// nothing is left of it when the process ends, however it ends.
//
// Threads: the store is thread-safe; a file is taken from by one thread at a time.
// Errors:  kIo, kOutOfMemory (a full disk) with the directory's name.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/slab_reader.h"
#include "contract/kv_memory_counters.h"
#include "device/kv_buffer/cold_options.h"

namespace slipstream::turbo {

// Counters that several threads add to.
class ColdCounters {
 public:
  // Those of all stores that there were in this process.
  [[nodiscard]] static ColdCounters& of_process();

  // What is resident is added by change_resident().
  void add(const KvMemoryCounters& more);
  void change_resident(std::int64_t n_bytes) { n_bytes_resident_ += n_bytes; }
  [[nodiscard]] KvMemoryCounters read() const;

 private:
  std::atomic<std::uint64_t> n_hits_ = 0;
  std::atomic<std::uint64_t> n_misses_ = 0;
  std::atomic<std::uint64_t> n_bytes_read_ = 0;
  std::atomic<std::uint64_t> n_bytes_written_ = 0;
  std::atomic<std::uint64_t> n_failed_reads_ = 0;
  std::atomic<std::uint64_t> n_failed_writes_ = 0;
  std::atomic<std::int64_t> n_bytes_resident_ = 0;
};

class ColdStore {
 public:
  explicit ColdStore(ColdOptions options);
  // Whether there was one in this process.
  [[nodiscard]] static bool was_used();

  [[nodiscard]] const ColdOptions& options() const { return options_; }

  // A cache's codes share the memory with those of the others, by their size.
  void add_codes(std::size_t n_bytes) { n_code_bytes_ += n_bytes; }
  void remove_codes(std::size_t n_bytes) { n_code_bytes_ -= n_bytes; }
  [[nodiscard]] std::size_t share_of(std::size_t n_bytes) const;

  // A reader belongs to the caller until it is given back.
  [[nodiscard]] std::unique_ptr<SlabReader> borrow_reader();
  void give_back(std::unique_ptr<SlabReader> reader) noexcept;
  // Fails once a reader could not say what became of its reads (slab_reader.h).
  [[nodiscard]] Result<void> check() const;

  void count(const KvMemoryCounters& more);
  void count_resident(std::int64_t n_bytes_more);
  [[nodiscard]] KvMemoryCounters counters() const { return counters_.read(); }

  // For tests: asked at each read and write; an errno makes it fail.
  struct Faults {
    std::function<int(const FilePiece&)> read;
    std::function<int()> write;
  };
  // REQUIRES: nothing is being read or written.
  void set_faults(Faults faults);
  [[nodiscard]] int write_fault() const { return faults_.write ? faults_.write() : 0; }

 private:
  ColdOptions options_;
  std::atomic<std::size_t> n_code_bytes_ = 0;
  std::atomic<bool> has_ended_ = false;
  ColdCounters counters_;
  Faults faults_;
  Mutex mutex_;
  std::vector<std::unique_ptr<SlabReader>> idle_ SLIP_GUARDED_BY(mutex_);
};

class ColdFile {
 public:
  [[nodiscard]] static Result<std::shared_ptr<ColdFile>> create(std::shared_ptr<ColdStore> store);
  ColdFile(const ColdFile&) = delete;
  ColdFile& operator=(const ColdFile&) = delete;
  // Logs the counters of the store.
  ~ColdFile();

  [[nodiscard]] ColdStore& store() const { return *store_; }
  [[nodiscard]] const DataFile& file() const { return file_; }

  // Makes sure that the disk has room for this many bytes more.
  [[nodiscard]] Result<void> reserve(std::uint64_t n_bytes);
  // Takes bytes, of those reserved while there are any, and gives their place. n_bytes is a number
  // of whole blocks.
  [[nodiscard]] Result<std::uint64_t> take(std::uint64_t n_bytes);

  // Writes whole blocks.
  [[nodiscard]] Result<void> write(std::span<const std::byte> from, std::uint64_t offset) const;

 private:
  ColdFile(std::shared_ptr<ColdStore> store, DataFile file)
      : store_(std::move(store)), file_(std::move(file)) {}

  std::shared_ptr<ColdStore> store_;  // shared with the device and its other buffers
  DataFile file_;                     // n_bytes: those reserved
  std::uint64_t n_taken_ = 0;
};

}  // namespace slipstream::turbo
