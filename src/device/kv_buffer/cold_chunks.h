// ColdChunks: which codes of a cache are in memory, when the rest of them lies in a file.
//
// The codes keep their addresses. A slab is the smallest run of chunks of one head and stream whose
// codes are whole blocks of the disk. It is in memory (hot), in the file (cold), or nowhere, because
// it is all zeroes (empty). Whoever is about to read or write codes holds their slabs: what is cold
// is then read, in one batch, to where it was before, and stays until it is let go. When more is in
// memory than the cache's share, slabs that nobody holds and that were not used of late are dropped,
// after being written to the file if they have changed. If all are held, memory is exceeded by
// those: by two groups of chunks for each thread (attention/cold_pieces.h).
//
//   empty --held--> hot <--held: read-- cold
//     ^              |                    ^
//     +-- unchanged, never written ---+---+ dropped, after being written if it has changed
//
// Threads: thread-safe, except for forget_all(), during which no one holds or asks for slabs.
// Errors:  hold: kIo; then nothing is held. A slab that could not be read stays cold, and one that
//          could not be written stays hot, so that the same can be asked again.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/slab_reader.h"
#include "device/kv_buffer/cold_store.h"

namespace slipstream::turbo {

// Where codes lie in memory: planes of slabs, one for each head of each stream.
struct CodePlanes {
  std::byte* first;
  std::size_t plane_stride;
  std::size_t slab_bytes;  // whole blocks
  std::int64_t slabs_of_plane;
  std::int64_t n_planes;

  [[nodiscard]] std::int64_t n_slabs() const { return n_planes * slabs_of_plane; }
  [[nodiscard]] std::size_t n_bytes() const {
    return static_cast<std::size_t>(n_slabs()) * slab_bytes;
  }
};

// The number of a slab: plane * slabs_of_plane + slab of the plane.
using Slab = std::uint32_t;

enum class Access {
  kRead,
  kWrite,
  kReplace,  // all of the slab is overwritten, by the only thread that uses it
};

class ColdChunks {
 public:
  // The slabs that a caller has asked for. They may be used after finish() and until the end of its
  // life.
  class Held {
   public:
    Held() = default;
    Held(Held&& other) noexcept { swap(other); }
    Held& operator=(Held&& other) noexcept {
      Held moved(std::move(other));
      swap(moved);
      return *this;
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() { release(); }

    // Waits until all slabs are in memory. REQUIRES: the caller has started nothing else that it has
    // not finished.
    [[nodiscard]] Result<void> finish();
    // The same for several; `ahead` is what else the caller has started. Whoever has to wait for
    // others ends its own reads first: they may be waiting for these.
    [[nodiscard]] static Result<void> finish(std::span<Held> held, std::span<Held> ahead);

   private:
    friend class ColdChunks;
    void swap(Held& other) noexcept;
    void release() noexcept;
    [[nodiscard]] Result<void> end_reads();
    [[nodiscard]] bool is_moving() const;
    [[nodiscard]] bool has_moving() const;  // REQUIRES: the lock

    ColdChunks* of_ = nullptr;
    Access access_ = Access::kRead;
    std::vector<Slab> slabs_;
    std::vector<Slab> reading_;  // those that this caller reads
    std::unique_ptr<SlabReader> reader_;
    SlabReader::Ticket ticket_ = 0;  // 0: the reads were not started
    Result<void> read_;              // how they ended
  };

  // The memory is all zeroes and nothing of it has been touched.
  [[nodiscard]] static Result<std::unique_ptr<ColdChunks>> create(const CodePlanes& planes,
                                                                  std::shared_ptr<ColdFile> file);
  ColdChunks(const ColdChunks&) = delete;
  ColdChunks& operator=(const ColdChunks&) = delete;
  ~ColdChunks();

  // Starts to read what is not in memory. A slab is named once.
  [[nodiscard]] Result<Held> start(std::vector<Slab> slabs, Access access);
  // start() and finish().
  [[nodiscard]] Result<Held> hold(std::vector<Slab> slabs, Access access);

  // Copies n slabs of one plane to others. REQUIRES: as for kReplace.
  [[nodiscard]] Result<void> copy(Slab from, Slab to, Slab n);

  // All slabs are empty: the caller has made the memory zero, or is about to.
  void forget_all();
  // Rows are lost: nothing can be held until forget_all(). why: for the log.
  void lose(const std::string& why);

 private:
  enum class State : std::uint8_t { kEmpty, kCold, kReading, kHot, kWriting };
  struct Entry {
    std::uint16_t n_holds = 0;
    State state = State::kEmpty;
    bool is_changed = false;  // other than in the file
    bool is_in_file = false;
    bool is_used = false;  // since the hand went over it
  };
  using Lock = std::unique_lock<std::mutex>;

  ColdChunks(const CodePlanes& planes, std::shared_ptr<ColdFile> file, std::uint64_t file_start);

  [[nodiscard]] std::byte* address(Slab slab) const;
  [[nodiscard]] std::uint64_t place(Slab slab) const {
    return file_start_ + std::uint64_t{slab} * planes_.slab_bytes;
  }
  // Neighbours in memory and in the file.
  [[nodiscard]] bool is_empty(Slab slab) const;
  void forget(Slab slab);
  [[nodiscard]] std::size_t run_length(const std::vector<Slab>& slabs, std::size_t first) const;
  void guard(const std::vector<Slab>& slabs, bool is_open) const;
  void enter(Slab slab, State state);
  void set_in_memory(std::size_t n_slabs);
  [[nodiscard]] Result<void> make_room(Lock& lock, std::size_t n_slabs);
  [[nodiscard]] std::vector<Slab> choose_victims(std::size_t n_slabs, std::size_t n_more);
  [[nodiscard]] Result<void> write(const std::vector<Slab>& slabs) const;
  void drop(const std::vector<Slab>& slabs);

  CodePlanes planes_;
  std::shared_ptr<ColdFile> file_;  // shared with the buffer and its other caches
  ColdStore& store_;
  std::uint64_t file_start_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> entries_;  // by slab
  std::vector<Slab> hot_;       // those in memory that are neither empty nor being written
  std::size_t hand_ = 0;
  std::size_t n_in_memory_ = 0;
  std::string loss_;
};

}  // namespace slipstream::turbo
