#include "device/experts/expert_slots.h"

#include <algorithm>

#include "base/check.h"
#include "base/format.h"

namespace slipstream::turbo {
namespace {

// Use counts are halved after this many uses per slot: long enough to tell experts apart, short
// enough to follow a new topic within a few hundred tokens.
constexpr std::uint64_t kUsesPerSlotBetweenHalvings = 16;
// kKept: the share of a policy's read count that is kept at each batch. kClearlyBetter: the other
// policy takes over below this share of the reads, so that a change pays.
constexpr double kKept = 0.99;
constexpr double kClearlyBetter = 0.95;

}  // namespace

Result<CachePolicy> parse_cache_policy(std::string_view name) {
  if (name == "lru") return CachePolicy::kLeastRecent;
  if (name == "lfu") return CachePolicy::kLeastOften;
  if (name == "auto") return CachePolicy::kAutomatic;
  return fail(Code::kInvalidArgument,
              format_text("no cache policy \"{}\": lru, lfu or auto", name));
}

ExpertSlots::ExpertSlots(int n_experts, int n_slots, CachePolicy policy)
    : experts_(static_cast<std::size_t>(n_experts)),
      expert_in_slot_(static_cast<std::size_t>(std::min(n_slots, n_experts)), -1),
      deciding_(policy == CachePolicy::kAutomatic ? CachePolicy::kLeastRecent : policy) {
  SLIP_CHECK(n_slots >= 1, "a cache without slots");
  if (policy != CachePolicy::kAutomatic) return;
  for (const CachePolicy rival : {CachePolicy::kLeastRecent, CachePolicy::kLeastOften}) {
    rivals_.push_back({.slots = std::make_unique<ExpertSlots>(n_experts, n_slots, rival)});
  }
}

void ExpertSlots::begin_batch(std::span<const int> experts) {
  ++batch_;
  for (const int expert : experts) {
    Expert& used = experts_[static_cast<std::size_t>(expert)];
    used.batch = batch_;
    used.last_use = batch_;
    ++used.n_uses;
    if (++n_uses_ % (kUsesPerSlotBetweenHalvings * expert_in_slot_.size()) == 0) {
      for (Expert& each : experts_) each.n_uses /= 2;
    }
  }
  compare_policies(experts);
}

void ExpertSlots::begin_guess(std::span<const int> experts) {
  ++batch_;
  for (const int expert : experts) experts_[static_cast<std::size_t>(expert)].batch = batch_;
}

bool ExpertSlots::can_hold(std::span<const int> experts) const {
  const auto n_taken = std::ranges::count_if(expert_in_slot_, [&](int held) {
    if (held < 0) return false;
    const Expert& expert = experts_[static_cast<std::size_t>(held)];
    return expert.is_pinned && expert.batch != batch_;
  });
  return static_cast<std::ptrdiff_t>(experts.size()) + n_taken <= n_slots();
}

void ExpertSlots::compare_policies(std::span<const int> experts) {
  for (Rival& rival : rivals_) {
    rival.n_reads *= kKept;
    rival.slots->begin_batch(experts);
    for (const int expert : experts) {
      if (rival.slots->slot_of(expert) >= 0) continue;
      rival.n_reads += 1;
      rival.slots->place(expert);
    }
  }
  if (rivals_.empty()) return;
  const std::size_t own = deciding_ == CachePolicy::kLeastRecent ? 0 : 1;
  if (rivals_[1 - own].n_reads < kClearlyBetter * rivals_[own].n_reads) {
    deciding_ = own == 0 ? CachePolicy::kLeastOften : CachePolicy::kLeastRecent;
  }
}

bool ExpertSlots::goes_before(const Expert& left, const Expert& right) const {
  if (deciding_ == CachePolicy::kLeastOften && left.n_uses != right.n_uses) {
    return left.n_uses < right.n_uses;
  }
  return left.last_use < right.last_use;
}

std::optional<int> ExpertSlots::place(int expert) {
  SLIP_CHECK(slot_of(expert) < 0, "the expert has a slot");
  int chosen = -1;
  for (int slot = 0; slot < n_slots(); ++slot) {
    const int held = expert_in(slot);
    if (held < 0) {
      chosen = slot;
      break;
    }
    const Expert& candidate = experts_[static_cast<std::size_t>(held)];
    if (candidate.is_pinned || candidate.batch == batch_) continue;
    if (chosen < 0 ||
        goes_before(candidate, experts_[static_cast<std::size_t>(expert_in(chosen))])) {
      chosen = slot;
    }
  }
  if (chosen < 0) return std::nullopt;
  overwrite(chosen, expert);
  return chosen;
}

void ExpertSlots::sort_by_worth(std::vector<int>& experts) const {
  // The policy does not matter: all experts of a batch were used just now, so only their use counts
  // tell them apart.
  std::ranges::stable_sort(experts, {}, [this](int expert) {
    const Expert& of = experts_[static_cast<std::size_t>(expert)];
    return std::pair(of.n_uses, of.last_use);
  });
}

std::vector<int> ExpertSlots::slots_by_worth() const {
  std::vector<int> slots;
  std::vector<int> experts;
  for (int slot = 0; slot < n_slots(); ++slot) {
    const int held = expert_in(slot);
    if (held < 0) {
      slots.push_back(slot);
    } else if (!experts_[static_cast<std::size_t>(held)].is_pinned) {
      experts.push_back(held);
    }
  }
  sort_by_worth(experts);
  for (const int expert : experts) slots.push_back(slot_of(expert));
  return slots;
}

void ExpertSlots::overwrite(int slot, int expert) {
  forget(slot);
  if (const int old_slot = slot_of(expert); old_slot >= 0) forget(old_slot);
  expert_in_slot_[static_cast<std::size_t>(slot)] = expert;
  experts_[static_cast<std::size_t>(expert)].slot = slot;
}

void ExpertSlots::forget(int slot) {
  int& held = expert_in_slot_[static_cast<std::size_t>(slot)];
  if (held >= 0) experts_[static_cast<std::size_t>(held)].slot = -1;
  held = -1;
}

void ExpertSlots::pin(int expert) {
  Expert& pinned = experts_[static_cast<std::size_t>(expert)];
  if (pinned.is_pinned || n_pinned_ + 1 >= n_slots()) return;
  pinned.is_pinned = true;
  ++n_pinned_;
}

}  // namespace slipstream::turbo
