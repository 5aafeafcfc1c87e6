#include "device/experts/expert_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

namespace slipstream::turbo {
namespace {

// Gives every expert of a batch a slot. Returns the number of experts that had to be read.
int hold(ExpertSlots& slots, std::vector<int> experts) {
  slots.begin_batch(experts);
  int n_reads = 0;
  for (const int expert : experts) {
    if (slots.slot_of(expert) >= 0) continue;
    ++n_reads;
    EXPECT_TRUE(slots.place(expert).has_value());
  }
  return n_reads;
}

TEST(ExpertSlots, TheLeastRecentlyUsedGoes) {
  ExpertSlots slots(8, 3, CachePolicy::kLeastRecent);
  hold(slots, {0});
  hold(slots, {1});
  hold(slots, {2});
  hold(slots, {0});
  hold(slots, {3});
  EXPECT_EQ(slots.slot_of(1), -1);
  EXPECT_GE(slots.slot_of(0), 0);
}

TEST(ExpertSlots, TheLeastOftenUsedGoes) {
  ExpertSlots slots(8, 2, CachePolicy::kLeastOften);
  for (int i = 0; i < 5; ++i) hold(slots, {0});
  hold(slots, {1});
  hold(slots, {2});
  EXPECT_GE(slots.slot_of(0), 0);
  EXPECT_EQ(slots.slot_of(1), -1);
}

TEST(ExpertSlots, WhatWasOftenUsedLongAgoGoesInTheEnd) {
  ExpertSlots slots(8, 2, CachePolicy::kLeastOften);
  for (int i = 0; i < 20; ++i) hold(slots, {0});
  for (int i = 0; i < 200; ++i) hold(slots, {1 + i % 2});
  EXPECT_EQ(slots.slot_of(0), -1);
}

TEST(ExpertSlots, NothingGoesThatTheBatchNeeds) {
  ExpertSlots slots(8, 3, CachePolicy::kLeastRecent);
  hold(slots, {0, 1, 2});
  const std::array needed = {0, 1, 2, 3};
  slots.begin_batch(needed);
  EXPECT_FALSE(slots.can_hold(needed));
  EXPECT_FALSE(slots.place(3).has_value());
}

TEST(ExpertSlots, ThePinnedStay) {
  ExpertSlots slots(8, 3, CachePolicy::kLeastRecent);
  slots.pin(0);
  hold(slots, {0});
  for (int i = 0; i < 20; ++i) hold(slots, {1 + i % 5});
  EXPECT_GE(slots.slot_of(0), 0);
  const std::array two = {5, 6};
  slots.begin_batch(two);
  EXPECT_TRUE(slots.can_hold(two));
  const std::array three = {5, 6, 7};
  slots.begin_batch(three);
  EXPECT_FALSE(slots.can_hold(three)) << "one of three slots is pinned to another";
}

TEST(ExpertSlots, OneSlotIsNeverPinnedAway) {
  ExpertSlots slots(4, 1, CachePolicy::kLeastRecent);
  slots.pin(0);
  hold(slots, {0});
  EXPECT_EQ(hold(slots, {1}), 1);
}

TEST(ExpertSlots, SlotsAndExpertsAgreeWhateverHappens) {
  for (const CachePolicy policy :
       {CachePolicy::kLeastRecent, CachePolicy::kLeastOften, CachePolicy::kAutomatic}) {
    std::mt19937 random(7);
    ExpertSlots slots(32, 10, policy);
    for (int step = 0; step < 2000; ++step) {
      std::set<int> batch;
      while (batch.size() < 4) batch.insert(static_cast<int>(random() % 32));
      if (random() % 8 == 0) slots.forget(static_cast<int>(random() % 10));
      if (random() % 8 == 0) {
        slots.overwrite(static_cast<int>(random() % 10), static_cast<int>(random() % 32));
      }
      hold(slots, {batch.begin(), batch.end()});
      for (const int expert : batch) EXPECT_GE(slots.slot_of(expert), 0);
      for (int slot = 0; slot < slots.n_slots(); ++slot) {
        if (slots.expert_in(slot) < 0) continue;
        ASSERT_EQ(slots.slot_of(slots.expert_in(slot)), slot);
      }
    }
  }
}

// A scan: a few experts are used all the time, the others once each, one after the other.
int reads_of_scan(CachePolicy policy) {
  ExpertSlots slots(64, 8, policy);
  int n_reads = 0;
  for (int step = 0; step < 4000; ++step) {
    n_reads += hold(slots, {step % 6, 6 + step % 58});
  }
  return n_reads;
}

// Each expert is used for a number of steps, as within a topic, and then another one.
int reads_of_topics(CachePolicy policy) {
  ExpertSlots slots(64, 8, policy);
  int n_reads = 0;
  for (int step = 0; step < 4000; ++step)
    n_reads += hold(slots, {step / 40 * 5 % 64, 8 + step / 10 % 50});
  return n_reads;
}

TEST(ExpertSlots, AutomaticIsNearTheBetterOfTheTwo) {
  for (const auto reads : {reads_of_scan, reads_of_topics}) {
    const int recent = reads(CachePolicy::kLeastRecent);
    const int often = reads(CachePolicy::kLeastOften);
    EXPECT_LE(reads(CachePolicy::kAutomatic), std::min(recent, often) * 1.1);
  }
  EXPECT_LT(reads_of_scan(CachePolicy::kLeastOften), reads_of_scan(CachePolicy::kLeastRecent) * 0.8)
      << "or the test says nothing";
}

}  // namespace
}  // namespace slipstream::turbo
