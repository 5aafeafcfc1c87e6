// PreciseChunks: which chunks of a cache are kept in 8 bits beside their codes, and where.
//
// A query gives most of its weight to the tokens just before it and to the very first one. In 8
// bits these take little memory, and attention that reads them makes an eighth of the error that it
// makes with 3- and 4-bit codes alone (docs/quality.md). Attention reads the 8-bit copies, if there
// are any, of the chunk that a query's own token was written into, of the one before, and of the
// first of its stream. So what a query reads does not depend on how a prompt is cut into batches.
//
// Threads: keep() and forget_*() by one thread while no other thread reads. Errors: none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/kv_buffer/compressed_cache.h"

namespace slipstream::turbo {

// A chunk that is written gets a slot; the chunk that was needed longest ago loses its slot. Chunks
// inside a long prompt, which newer chunks of the same batch follow, would lose theirs soon. They
// are kept in a scratch that all layers share, until the next layer needs it. If more sequences are
// written at once than there are slots for, some chunks have no copy and queries read their codes.
class PreciseChunks {
 public:
  // 8-bit caches and plain ones have no 8-bit copies.
  [[nodiscard]] static bool suits(const CacheShape& coded) { return coded.bits != 8; }
  // The 8-bit cache that holds the slots.
  [[nodiscard]] static CacheShape slots_shape(const CacheShape& coded);
  // A scratch for batches of n_rows rows.
  [[nodiscard]] static CacheShape scratch_shape(const CacheShape& coded, std::int64_t n_rows);

  PreciseChunks(const CacheShape& coded, CompressedCache slots);

  // Gives a slot to each chunk of these rows, which are about to be written, as long as there are
  // slots that this call does not need. Returns the chunks that had no slot before and may hold
  // older rows.
  [[nodiscard]] std::vector<std::int64_t> keep(std::span<const std::int64_t> row_idx,
                                               const std::shared_ptr<CompressedCache>& scratch);
  // chunk: stream * chunks of a stream + chunk of the stream.
  [[nodiscard]] PrecisePlace place(std::int64_t chunk);
  // The same without the scratch, which only the attention of the same layer may read.
  [[nodiscard]] PrecisePlace lasting_place(std::int64_t chunk);

  // A chunk that keep() returned and that was not filled has no copy.
  void forget(std::int64_t chunk);
  void forget_all();
  void forget_stream(std::int64_t stream);

 private:
  static constexpr std::int64_t kNone = -1;
  struct Slot {
    std::int64_t chunk = kNone;
    // The last call that wrote into the chunk, or into a stream whose first chunk it is.
    std::uint64_t last_call = 0;
    // The last call that wrote into the chunk behind it.
    std::uint64_t last_call_behind = 0;
  };
  struct Passing {
    std::int64_t chunk;
    std::int64_t slot;  // of the scratch
  };

  [[nodiscard]] std::int64_t find_slot(std::int64_t chunk) const;
  [[nodiscard]] std::int64_t free_slot() const;
  void set_slot(std::int64_t slot, std::int64_t chunk);
  void touch(std::int64_t chunk, std::uint64_t Slot::* when);

  std::int64_t n_cells_;
  std::int64_t n_chunks_;  // of a stream
  CompressedCache tiles_;
  std::vector<Slot> slots_;
  std::vector<std::int64_t> slot_of_;  // by chunk
  std::uint64_t call_ = 0;
  std::shared_ptr<CompressedCache> scratch_;  // shared with the other layers and the graph
  std::vector<Passing> passing_;              // ascending by chunk
};

}  // namespace slipstream::turbo
