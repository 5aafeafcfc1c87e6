#include "device/experts/expert_layer.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "base/check.h"

namespace slipstream::turbo {
namespace {

// This many slots, half of them read at a time, keep a disk busy.
constexpr std::size_t kSlotsToReadThrough = 8;

std::size_t round_up_to_block(std::size_t n_bytes) {
  return (n_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

}  // namespace

std::size_t ExpertMatrix::slot_bytes() const {
  const bool starts_alike = slab_bytes % kBlockBytes == 0;
  const std::size_t start_max = starts_alike ? offset % kBlockBytes : kBlockBytes - 1;
  return round_up_to_block(start_max + slab_bytes);
}

std::size_t ExpertMatrix::start_in_slot() const {
  return slab_bytes % kBlockBytes == 0 ? offset % kBlockBytes : 0;
}

FilePiece ExpertMatrix::piece(int expert, int slot) {
  return {.file = file,
          .offset = offset + static_cast<std::uint64_t>(expert) * slab_bytes,
          .n_bytes = slab_bytes,
          .into = arena.bytes().data() + static_cast<std::size_t>(slot) * slot_bytes()};
}

void ExpertMatrix::settle(int expert, int slot) {
  const FilePiece read = piece(expert, slot);
  const std::size_t start = read.offset % kBlockBytes;
  if (start == start_in_slot()) return;
  std::memmove(read.into + start_in_slot(), read.into + start, slab_bytes);
}

std::size_t ExpertLayer::bytes_per_slot() const {
  std::size_t n_bytes = 0;
  for (const ExpertMatrix& matrix : matrices_) n_bytes += matrix.slot_bytes();
  return n_bytes;
}

Result<void> ExpertLayer::allocate(int n_slots, CachePolicy policy) {
  slots_ = std::make_unique<ExpertSlots>(n_experts_, n_slots, policy);
  n_uses_.resize(static_cast<std::size_t>(n_experts_));
  for (ExpertMatrix& matrix : matrices_) {
    Result<Mapping> memory =
        Mapping::anonymous(matrix.slot_bytes() * static_cast<std::size_t>(slots_->n_slots()));
    if (!memory) return std::unexpected(std::move(memory.error()));
    matrix.arena = std::move(*memory);
    // Huge pages, if available, leave the kernel fewer pages to list for a read.
    ::madvise(matrix.arena.bytes().data(), matrix.arena.bytes().size(), MADV_HUGEPAGE);
  }
  return {};
}

const std::vector<Turn>& ExpertLayer::plan(std::span<const int> experts, SlabReader& reader) {
  finish_guess(reader);
  forget_unfinished_turns();
  turns_.clear();
  slots_->begin_batch(experts);
  for (const int expert : experts) {
    ++n_uses_[static_cast<std::size_t>(expert)];
    const bool is_hit = slots_->slot_of(expert) >= 0;
    ++(is_hit ? counters_.n_hits : counters_.n_misses);
    if (is_hit && std::ranges::find(guessed_, expert, &Placement::expert) != guessed_.end()) {
      ++counters_.n_guessed_used;
    }
  }
  guessed_.clear();
  if (!slots_->can_hold(experts)) {
    plan_in_turns(experts);
    return turns_;
  }
  Turn turn;
  for (const int expert : experts) {
    if (const int slot = slots_->slot_of(expert); slot >= 0) {
      turn.push_back({.expert = expert, .slot = slot, .is_read = false});
      continue;
    }
    const std::optional<int> slot = slots_->place(expert);
    SLIP_CHECK(slot.has_value(), "no room for what fits");
    turn.push_back({.expert = expert, .slot = *slot, .is_read = true});
  }
  turns_.push_back(std::move(turn));
  return turns_;
}

// slots_ describes the state after the last turn. If a batch stopped before all matrices got there,
// because it was aborted or a read failed, it is not known what the slots hold.
void ExpertLayer::forget_unfinished_turns() {
  if (turns_.size() > 1 && n_matrices_done_ < matrices_.size()) {
    for (int slot = 0; slot < slots_->n_slots(); ++slot) slots_->forget(slot);
  }
  n_matrices_done_ = 0;
}

// Most slots keep their experts, those that are worth most. Missing experts are read into the other
// slots, alternately into one half of them and the other. The first turns have the experts that are
// in memory.
void ExpertLayer::plan_in_turns(std::span<const int> experts) {
  std::vector<int> through = slots_->slots_by_worth();
  through.resize(std::min(through.size(), std::max(kSlotsToReadThrough, through.size() / 4)));
  const auto half = through.begin() + static_cast<std::ptrdiff_t>(through.size() / 2);
  const std::span first(through.begin(), half);
  const std::span second(half, through.end());
  std::vector<int> missing;
  turns_.resize(2);
  for (const int expert : experts) {
    const int slot = slots_->slot_of(expert);
    if (slot < 0) {
      missing.push_back(expert);
    } else {
      // Experts in the first half are computed in turn 0, because turn 2 is read into that half
      // while turn 1 is computed.
      turns_[std::ranges::contains(first, slot) ? 0 : 1].push_back(
          {.expert = expert, .slot = slot, .is_read = false});
    }
  }
  slots_->sort_by_worth(missing);  // those worth most come last and stay in memory
  for (std::size_t n_done = 0; n_done < missing.size();) {
    Turn turn;
    for (const int slot : turns_.size() % 2 == 0 ? first : second) {
      if (n_done == missing.size()) break;
      const int expert = missing[n_done++];
      slots_->overwrite(slot, expert);
      turn.push_back({.expert = expert, .slot = slot, .is_read = true});
    }
    // With one slot every other turn is empty, so that no slot is read into while it is computed.
    turns_.push_back(std::move(turn));
  }
}

SlabReader::Ticket ExpertLayer::start_reads(const Turn& turn, ExpertMatrix& matrix,
                                            SlabReader& reader) {
  pieces_.clear();
  for (const Placement& placement : turn) {
    if (!placement.is_read) continue;
    pieces_.push_back(matrix.piece(placement.expert, placement.slot));
    counters_.n_bytes_read += matrix.slab_bytes;
  }
  return reader.start(pieces_);
}

Result<void> ExpertLayer::finish_reads(const Turn& turn, ExpertMatrix& matrix,
                                       SlabReader::Ticket ticket, SlabReader& reader) {
  const Result<void> read = wait(ticket, reader);
  for (const Placement& placement : turn) {
    if (!placement.is_read) continue;
    if (read) {
      matrix.settle(placement.expert, placement.slot);
    } else {
      slots_->forget(placement.slot);
    }
  }
  return read;
}

Result<void> ExpertLayer::read_all(const Turn& turn, SlabReader& reader) {
  pieces_.clear();
  for (const Placement& placement : turn) {
    if (!placement.is_read) continue;
    for (ExpertMatrix& matrix : matrices_) {
      pieces_.push_back(matrix.piece(placement.expert, placement.slot));
      counters_.n_bytes_read += matrix.slab_bytes;
    }
  }
  if (pieces_.empty()) return {};
  const Result<void> read = wait(reader.start(pieces_), reader);
  for (const Placement& placement : turn) {
    if (!placement.is_read) continue;
    if (!read) slots_->forget(placement.slot);
    for (ExpertMatrix& matrix : matrices_) {
      if (read) matrix.settle(placement.expert, placement.slot);
    }
  }
  return read;
}

Result<void> ExpertLayer::wait(SlabReader::Ticket ticket, SlabReader& reader) {
  const auto start = std::chrono::steady_clock::now();
  Result<void> read = reader.wait(ticket);
  counters_.stall_ns += static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
  return read;
}

void ExpertLayer::guess(std::span<const int> experts, SlabReader& reader) {
  finish_guess(reader);
  guessed_.clear();
  slots_->begin_guess(experts);
  pieces_.clear();
  for (const int expert : experts) {
    if (slots_->slot_of(expert) >= 0) continue;
    const std::optional<int> slot = slots_->place(expert);
    if (!slot) break;
    guessed_.push_back({.expert = expert, .slot = *slot, .is_read = true});
    for (ExpertMatrix& matrix : matrices_) {
      pieces_.push_back(matrix.piece(expert, *slot));
      counters_.n_bytes_read += matrix.slab_bytes;
    }
  }
  counters_.n_guessed += guessed_.size();
  if (!pieces_.empty()) guess_ticket_ = reader.start(pieces_);
}

// If a guess could not be read, its slots are emptied. A batch that needs such an expert reads it
// again and reports the error.
void ExpertLayer::finish_guess(SlabReader& reader) {
  if (guess_ticket_ == 0) return;
  const Result<void> read = wait(guess_ticket_, reader);
  guess_ticket_ = 0;
  for (const Placement& placement : guessed_) {
    if (!read) slots_->forget(placement.slot);
    for (ExpertMatrix& matrix : matrices_) {
      if (read) matrix.settle(placement.expert, placement.slot);
    }
  }
  if (!read) guessed_.clear();
}

}  // namespace slipstream::turbo
