#include "device/kv_buffer/precise_chunks.h"

#include <algorithm>
#include <utility>

namespace slipstream::turbo {
namespace {

CacheShape in_8_bits(const CacheShape& coded, std::int64_t n_chunks) {
  return {.side = coded.side,
          .bits = 8,
          .head_dim = coded.head_dim,
          .n_heads = coded.n_heads,
          .n_cells = n_chunks * kChunkTokens,
          .n_streams = 1,
          .is_copy = true};
}

}  // namespace

CacheShape PreciseChunks::slots_shape(const CacheShape& coded) {
  return in_8_bits(coded, precise_slots(coded.n_cells) * coded.n_streams);
}

CacheShape PreciseChunks::scratch_shape(const CacheShape& coded, std::int64_t n_rows) {
  return in_8_bits(coded, n_chunks(n_rows));
}

PreciseChunks::PreciseChunks(const CacheShape& coded, CompressedCache slots)
    : n_cells_(coded.n_cells),
      n_chunks_(coded.n_chunks()),
      tiles_(std::move(slots)),
      slots_(static_cast<std::size_t>(tiles_.shape().n_cells / kChunkTokens)),
      slot_of_(static_cast<std::size_t>(n_chunks_ * coded.n_streams), kNone) {}

std::int64_t PreciseChunks::find_slot(std::int64_t chunk) const {
  return slot_of_[static_cast<std::size_t>(chunk)];
}

void PreciseChunks::set_slot(std::int64_t slot, std::int64_t chunk) {
  Slot& place = slots_[static_cast<std::size_t>(slot)];
  if (place.chunk != kNone) slot_of_[static_cast<std::size_t>(place.chunk)] = kNone;
  place = {.chunk = chunk, .last_call = call_, .last_call_behind = 0};
  slot_of_[static_cast<std::size_t>(chunk)] = slot;
}

// Returns an empty slot, or the one that was needed longest ago, but none that this call writes
// into. A slot whose next chunk this call writes is taken last: only the first rows of a prompt's
// next batch would miss it, and the prompt's end, which every later token reads, needs a slot.
std::int64_t PreciseChunks::free_slot() const {
  const auto is_free = [&](const Slot& slot) {
    return slot.chunk == kNone || slot.last_call < call_;
  };
  const auto age = [&](const Slot& slot) {  // {false, 0} for an empty slot
    return std::pair(slot.last_call_behind == call_,
                     std::max(slot.last_call, slot.last_call_behind));
  };
  std::int64_t oldest = kNone;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!is_free(slots_[i])) continue;
    if (oldest == kNone || age(slots_[i]) < age(slots_[static_cast<std::size_t>(oldest)])) {
      oldest = static_cast<std::int64_t>(i);
    }
  }
  return oldest;
}

void PreciseChunks::touch(std::int64_t chunk, std::uint64_t Slot::* when) {
  if (const std::int64_t slot = find_slot(chunk); slot != kNone) {
    slots_[static_cast<std::size_t>(slot)].*when = call_;
  }
}

std::vector<std::int64_t> PreciseChunks::keep(std::span<const std::int64_t> row_idx,
                                              const std::shared_ptr<CompressedCache>& scratch) {
  ++call_;
  passing_.clear();
  scratch_ = scratch;
  struct Touched {
    std::int64_t chunk;
    std::int64_t n_rows;
  };
  std::vector<std::int64_t> chunks(row_idx.size());
  std::ranges::transform(row_idx, chunks.begin(), [&](std::int64_t row) {
    return row / n_cells_ * n_chunks_ + row % n_cells_ / kChunkTokens;
  });
  std::ranges::sort(chunks);
  std::vector<Touched> touched;
  for (const std::int64_t chunk : chunks) {
    if (touched.empty() || touched.back().chunk != chunk) touched.push_back({chunk, 0});
    ++touched.back().n_rows;
  }
  // From here on nothing throws: a slot that is taken and then not filled would hold old rows.
  std::vector<std::int64_t> taken;
  taken.reserve(touched.size());
  passing_.reserve(touched.size());
  for (const Touched& one : touched) {
    const std::int64_t first_of_stream = one.chunk / n_chunks_ * n_chunks_;
    touch(one.chunk, &Slot::last_call);
    touch(first_of_stream, &Slot::last_call);
    touch(std::max(one.chunk - 1, first_of_stream), &Slot::last_call_behind);
  }
  for (std::size_t i = 0; i < touched.size(); ++i) {
    const auto [chunk, n_rows] = touched[i];
    if (find_slot(chunk) != kNone) continue;
    const bool is_whole = n_rows == kChunkTokens;
    const std::int64_t in_stream = chunk % n_chunks_;
    const bool passes = is_whole && in_stream != 0 && in_stream + 2 < n_chunks_ &&
                        i + 2 < touched.size() && touched[i + 2].chunk == chunk + 2;
    const std::int64_t slot = passes ? kNone : free_slot();
    if (slot != kNone) {
      set_slot(slot, chunk);
      if (!is_whole) taken.push_back(chunk);
    } else if (const auto next = static_cast<std::int64_t>(passing_.size());
               is_whole && scratch_ != nullptr && next < scratch_->shape().n_cells / kChunkTokens) {
      passing_.push_back({.chunk = chunk, .slot = next});
    }
  }
  return taken;
}

PrecisePlace PreciseChunks::lasting_place(std::int64_t chunk) {
  const std::int64_t slot = find_slot(chunk);
  return slot == kNone ? PrecisePlace{nullptr, 0} : PrecisePlace{&tiles_, slot};
}

PrecisePlace PreciseChunks::place(std::int64_t chunk) {
  if (const PrecisePlace lasting = lasting_place(chunk); lasting.tiles != nullptr) return lasting;
  const auto passing = std::ranges::lower_bound(passing_, chunk, {}, &Passing::chunk);
  if (passing == passing_.end() || passing->chunk != chunk) return {nullptr, 0};
  return {scratch_.get(), passing->slot};
}

void PreciseChunks::forget(std::int64_t chunk) {
  const std::int64_t slot = find_slot(chunk);
  if (slot == kNone) return;
  slot_of_[static_cast<std::size_t>(chunk)] = kNone;
  slots_[static_cast<std::size_t>(slot)] = {};
}

void PreciseChunks::forget_all() {
  std::ranges::fill(slots_, Slot{});
  std::ranges::fill(slot_of_, kNone);
  passing_.clear();
}

void PreciseChunks::forget_stream(std::int64_t stream) {
  for (Slot& slot : slots_) {
    if (slot.chunk == kNone || slot.chunk / n_chunks_ != stream) continue;
    slot_of_[static_cast<std::size_t>(slot.chunk)] = kNone;
    slot = {};
  }
  passing_.clear();
}

}  // namespace slipstream::turbo
