// ExpertSlots: which expert of a layer lies in which slot of its cache, and which one goes when
// another needs the room.
//
// A layer's gate, up and down matrices of one expert come and go together, so a slot holds an
// expert. Two policies choose the one that goes: the least recently used, or the least often used
// with use counts that halve now and then. The third, automatic, keeps for each of the two the list
// of what it would hold, and follows the one that would have had to read less lately.
//
// Nothing is chosen that the current batch needs, that is pinned, or whose read is under way.
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
  // The slot that holds the expert; -1: none.
  [[nodiscard]] int slot_of(int expert) const {
    return experts_[static_cast<std::size_t>(expert)].slot;
  }
  [[nodiscard]] int expert_in(int slot) const {
    return expert_in_slot_[static_cast<std::size_t>(slot)];
  }

  // A batch needs these, each named once: they count as used, and none of them goes before the next
  // batch begins.
  void begin_batch(std::span<const int> experts);
  // A later batch may need these: none of them goes before the next batch begins.
  void begin_guess(std::span<const int> experts);
  // Whether the current batch's experts, each named once, find room at the same time.
  [[nodiscard]] bool can_hold(std::span<const int> experts) const;
  // Gives the expert a slot: an empty one, or that of the expert that goes. Empty if none may go.
  std::optional<int> place(int expert);
  // All slots that are not pinned, and experts, by what they are worth keeping: least first.
  [[nodiscard]] std::vector<int> slots_by_worth() const;
  void sort_by_worth(std::vector<int>& experts) const;
  // Gives it this slot, whatever lies there: for batches that need more experts than there are
  // slots, and go through them in turns.
  void overwrite(int slot, int expert);
  // What a slot holds is not to be trusted: its read failed.
  void forget(int slot);
  // Stays for good once it is placed. At most n_slots() - 1 can be pinned; more are ignored.
  void pin(int expert);

  // Which of the two policies decides at present.
  [[nodiscard]] CachePolicy deciding() const { return deciding_; }

 private:
  struct Expert {
    int slot = -1;
    std::uint64_t last_use = 0;
    std::uint32_t n_uses = 0;  // halved now and then
    std::uint64_t batch = 0;   // the last one that needs it
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

  // For kAutomatic: what each policy alone would hold, and the reads it would have needed.
  struct Rival {
    std::unique_ptr<ExpertSlots> slots;
    double n_reads = 0;
  };
  std::vector<Rival> rivals_;
};

}  // namespace slipstream::turbo
