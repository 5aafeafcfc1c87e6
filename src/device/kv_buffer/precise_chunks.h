// PreciseChunks: which chunks of a cache are kept in 8 bits beside their codes, and where.
//
// A query gives most of its weight to the tokens just before it and to the very first one. In 8
// bits these take little memory, and attention that reads them there makes an eighth of the error
// that it makes with 3- and 4-bit codes alone (docs/quality.md). Attention reads precisely the
// chunk that a query's own token was written into, the one before, and the first of its stream, if
// they are here; so what a query reads does not depend on how a prompt is cut into batches.
//
// Chunks that are written get a slot, and the one that was needed longest ago loses it. Those
// inside a long prompt, which newer ones of the same batch follow, would only pass through: they
// lie in a scratch that all layers share, until the next layer needs it. Where more sequences are
// written at once than there are slots for, some have none: their queries read codes.
//
// Threads: keep() and the forgetting by one thread while nobody reads. Errors: none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/kv_buffer/compressed_cache.h"

namespace slipstream::turbo {

class PreciseChunks {
 public:
  // Caches of 8 bits, and plain ones, have none.
  [[nodiscard]] static bool suits(const CacheShape& coded) { return coded.bits != 8; }
  // The 8-bit cache that holds the slots.
  [[nodiscard]] static CacheShape slots_shape(const CacheShape& coded);
  // One for so many rows at once.
  [[nodiscard]] static CacheShape scratch_shape(const CacheShape& coded, std::int64_t n_rows);

  PreciseChunks(const CacheShape& coded, CompressedCache slots);

  // The chunks of these rows, which are about to be written, get a slot each, as far as there are
  // slots that this call does not need. Gives those that had none before and may hold older rows.
  [[nodiscard]] std::vector<std::int64_t> keep(std::span<const std::int64_t> row_idx,
                                               const std::shared_ptr<CompressedCache>& scratch);
  // chunk: stream * chunks of a stream + chunk of the stream.
  [[nodiscard]] PrecisePlace place(std::int64_t chunk);
  // The same, but not in the scratch, which only the attention of the same layer may read.
  [[nodiscard]] PrecisePlace lasting_place(std::int64_t chunk);

  void forget_all();
  void forget_stream(std::int64_t stream);

 private:
  static constexpr std::int64_t kNone = -1;
  struct Slot {
    std::int64_t chunk = kNone;
    // The last calls that wrote into it or had it as a stream's first, and that wrote behind it.
    std::uint64_t last_call = 0;
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
