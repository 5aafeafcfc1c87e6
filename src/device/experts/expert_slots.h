// ExpertSlots: which expert of a layer is in which slot of its cache, and which one is evicted when
// another needs a slot.
//
// The gate, up and down matrices of an expert are loaded and evicted together, so a slot holds an
// expert. Two policies choose the expert to evict: the least recently used, or the least often
// used, with use counts that are halved now and then. The third policy, automatic, simulates the
// contents of the cache under both and follows the one that would have read less lately.
//
// Experts that the current batch needs, that are pinned, or that are being read are never evicted.
//
// Threads: thread-compatible. Errors: none; no I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipstream::turbo {

enum class CachePolicy { kLeastRecent, kLeastOften, kAutomatic };

// "lru", "lfu" or "auto".
[[nodiscard]] Result<CachePolicy> parse_cache_policy(std::string_view name);

class ExpertSlots {
 public:
  ExpertSlots(int n_experts, int n_slots, CachePolicy policy);

  [[nodiscard]] int n_slots() const { return static_cast<int>(expert_in_slot_.size()); }
  [[nodiscard]] int n_experts() const { return static_cast<int>(experts_.size()); }
  // The slot that holds the expert, or -1.
  [[nodiscard]] int slot_of(int expert) const {
    return experts_[static_cast<std::size_t>(expert)].slot;
  }
  [[nodiscard]] int expert_in(int slot) const {
    return expert_in_slot_[static_cast<std::size_t>(slot)];
  }

  // Begins a batch that needs these experts, each named once. They count as used, and none of them
  // is evicted before the next batch begins.
  void begin_batch(std::span<const int> experts);
  // Begins a guess that a later batch needs these experts. None of them is evicted before the next
  // batch begins.
  void begin_guess(std::span<const int> experts);
  // Whether the current batch's experts, each named once, fit at the same time.
  [[nodiscard]] bool can_hold(std::span<const int> experts) const;
  // Gives the expert an empty slot, or that of an evicted expert; nullopt if none may be evicted.
  std::optional<int> place(int expert);
  // Order all slots that are not pinned, or the given experts, by how much they are worth keeping,
  // least first.
  [[nodiscard]] std::vector<int> slots_by_worth() const;
  void sort_by_worth(std::vector<int>& experts) const;
  // Gives the expert this slot, whatever it holds. For batches that need more experts than there
  // are slots and are computed in turns.
  void overwrite(int slot, int expert);
  // Makes a slot empty, because its content is not valid: its read failed.
  void forget(int slot);
  // Pins the expert: once it is placed, it is never evicted. At most n_slots() - 1 can be pinned;
  // more are ignored.
  void pin(int expert);

  // The one of the two policies that decides at present.
  [[nodiscard]] CachePolicy deciding() const { return deciding_; }

 private:
  struct Expert {
    int slot = -1;
    std::uint64_t last_use = 0;
    std::uint32_t n_uses = 0;  // halved now and then
    std::uint64_t batch = 0;   // the last batch or guess that needs it
    bool is_pinned = false;
  };

  [[nodiscard]] bool goes_before(const Expert& left, const Expert& right) const;
  void compare_policies(std::span<const int> experts);

  std::vector<Expert> experts_;
  std::vector<int> expert_in_slot_;  // -1: empty
  CachePolicy deciding_;
  std::uint64_t batch_ = 0;
  std::uint64_t n_uses_ = 0;
  int n_pinned_ = 0;

  // For kAutomatic: what each policy alone would hold, and the reads that it would have needed.
  struct Rival {
    std::unique_ptr<ExpertSlots> slots;
    double n_reads = 0;
  };
  std::vector<Rival> rivals_;
};

}  // namespace slipstream::turbo
