#include "engine/prefixes/disk_prefixes.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <thread>

#include "engine/prefixes/disk/disk_tier_test_support.h"

namespace slipstream {
namespace {

// Holds prefixes as tokens: the state of a slice is the bytes of its tokens.
class FakeMemory final : public PrefixMemory {
 public:
  explicit FakeMemory(bool is_divisible = true) : is_divisible_(is_divisible) {}

  [[nodiscard]] bool is_divisible() const override { return is_divisible_; }
  [[nodiscard]] int n_held(Salt salt, std::span<const Token> tokens) const override {
    const auto found = held.find(salt);
    if (found == held.end()) return 0;
    const std::span<const Token> here = found->second;
    const auto n_common = std::ranges::mismatch(here, tokens).in1 - here.begin();
    return !is_divisible_ && static_cast<std::size_t>(n_common) < here.size()
               ? 0
               : static_cast<int>(n_common);
  }
  [[nodiscard]] Result<std::vector<std::byte>> save(Salt salt, std::span<const Token> tokens,
                                                    int first) const override {
    EXPECT_EQ(n_held(salt, tokens), static_cast<int>(tokens.size()));
    const auto bytes = std::as_bytes(tokens.subspan(static_cast<std::size_t>(first)));
    return std::vector(bytes.begin(), bytes.end());
  }
  [[nodiscard]] Result<void> restore(Salt salt, std::span<const Token> tokens,
                                     const StateSlice& slice) override {
    if (n_restores_left-- == 0) return fail(Code::kOverloaded, "no cells are free");
    EXPECT_LE(slice.first, n_held(salt, tokens));
    const auto bytes = std::as_bytes(tokens.subspan(static_cast<std::size_t>(slice.first)));
    EXPECT_TRUE(std::ranges::equal(bytes, slice.state.first(bytes.size())));
    held[salt].assign(tokens.begin(), tokens.end());
    return {};
  }

  std::map<Salt, std::vector<Token>> held;  // one prefix for each salt
  int n_restores_left = 1000;

 private:
  const bool is_divisible_;
};

std::vector<Token> numbers(int n, int first = 0) {
  std::vector<Token> tokens(static_cast<std::size_t>(n));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

class DiskPrefixesTest : public testing::Test {
 protected:
  [[nodiscard]] DiskPrefixes open(PrefixMemory& memory,
                                  std::chrono::seconds idle_time = std::chrono::seconds(0),
                                  std::chrono::seconds busy_time = std::chrono::hours(1)) const {
    auto tier = DiskTier::open(directory_.path(), std::uint64_t{1} << 30, kFingerprint);
    return {std::move(*tier),
            memory,
            {.idle_time = idle_time, .busy_time = busy_time, .n_tokens_min = 100}};
  }
  static int load(DiskPrefixes& disk, Salt salt, const std::vector<Token>& tokens) {
    int n_slices = 0;
    disk.begin_load(salt, tokens);
    while (disk.is_loading()) {
      if (disk.is_reading()) {
        std::this_thread::yield();
        continue;
      }
      disk.load_slice();
      ++n_slices;
    }
    return n_slices;
  }
  void store(Salt salt, const std::vector<Token>& tokens, bool is_divisible = true) const {
    FakeMemory memory(is_divisible);
    memory.held[salt] = tokens;
    DiskPrefixes disk = open(memory);
    disk.remember(salt, tokens);
    disk.finish(std::chrono::seconds(10));
  }

  TemporaryDirectory directory_;
};

TEST_F(DiskPrefixesTest, WhatWasSavedInSlicesIsLoadedInSlices) {
  const std::vector<Token> tokens = numbers(1000);
  store(7, tokens);
  FakeMemory memory;
  DiskPrefixes disk = open(memory);
  EXPECT_TRUE(disk.has_more(7, tokens));
  EXPECT_FALSE(disk.has_more(8, tokens)) << "another tenant's";
  EXPECT_EQ(load(disk, 7, tokens), 4);
  EXPECT_EQ(memory.held[7], tokens);
  EXPECT_FALSE(disk.has_more(7, tokens));
}

TEST_F(DiskPrefixesTest, OnlyWhatThePromptSharesIsLoadedAndOnlyWhatMemoryLacks) {
  store(7, numbers(1000));
  std::vector<Token> prompt = numbers(700);
  prompt.push_back(-1);
  FakeMemory memory;
  memory.held[7] = numbers(300);
  DiskPrefixes disk = open(memory);
  EXPECT_EQ(load(disk, 7, prompt), 2) << "[256, 512) and [512, 768)";
  EXPECT_EQ(memory.held[7], numbers(700));
}

TEST_F(DiskPrefixesTest, NotWorthItIsLeftThere) {
  store(7, numbers(400));
  FakeMemory memory;
  DiskPrefixes disk = open(memory);
  EXPECT_FALSE(disk.has_more(7, numbers(99)));
  memory.held[7] = numbers(301);
  EXPECT_FALSE(disk.has_more(7, numbers(400)));
  disk.remember(7, numbers(99));
  EXPECT_FALSE(disk.next_save().has_value());
}

TEST_F(DiskPrefixesTest, AStateThatCannotBeCutIsLoadedWholeOrNotAtAll) {
  store(7, numbers(1000), false);
  FakeMemory memory(false);
  DiskPrefixes disk = open(memory);
  EXPECT_FALSE(disk.has_more(7, numbers(999)));
  EXPECT_TRUE(disk.has_more(7, numbers(1001)));
  EXPECT_EQ(load(disk, 7, numbers(1001)), 1);
  EXPECT_EQ(memory.held[7], numbers(1000));
}

TEST_F(DiskPrefixesTest, WithoutFreeCellsWhatIsThereStays) {
  store(7, numbers(1000));
  FakeMemory memory;
  memory.n_restores_left = 2;
  DiskPrefixes disk = open(memory);
  EXPECT_EQ(load(disk, 7, numbers(1000)), 3);
  EXPECT_EQ(memory.held[7], numbers(512));
}

TEST_F(DiskPrefixesTest, WhatLeavesMemoryWhileItIsSavedIsSavedUpToThere) {
  FakeMemory memory;
  memory.held[7] = numbers(1000);
  {
    DiskPrefixes disk = open(memory);
    disk.remember(7, numbers(1000));
    disk.save_slice();
    disk.save_slice();
    memory.held[7] = numbers(600);
    disk.finish(std::chrono::seconds(10));
  }
  FakeMemory empty;
  DiskPrefixes disk = open(empty);
  load(disk, 7, numbers(1000));
  EXPECT_EQ(empty.held[7], numbers(512));
}

TEST_F(DiskPrefixesTest, AConversationThatGoesOnIsSavedOnce) {
  FakeMemory memory;
  memory.held[7] = numbers(500);
  DiskPrefixes disk = open(memory);
  for (const int n : {200, 500, 300}) disk.remember(7, numbers(n));
  disk.finish(std::chrono::seconds(10));
  EXPECT_EQ(disk.stats().n_writes, 1U);
}

TEST_F(DiskPrefixesTest, WaitsUntilAPrefixIsIdleUnlessInAHurry) {
  FakeMemory memory;
  memory.held[7] = numbers(500);
  DiskPrefixes disk = open(memory, std::chrono::seconds(1000));
  EXPECT_FALSE(disk.next_save().has_value());
  disk.remember(7, numbers(500));
  EXPECT_GT(*disk.next_save(), DiskPrefixes::Clock::now() + std::chrono::seconds(900));
  disk.hurry();
  EXPECT_LT(*disk.next_save(), DiskPrefixes::Clock::now());
}

TEST_F(DiskPrefixesTest, AConversationThatNeverRestsIsSavedAllTheSame) {
  using std::chrono::seconds;
  FakeMemory memory;
  memory.held[7] = numbers(500);
  DiskPrefixes disk = open(memory, seconds(1000), seconds(1000));
  disk.remember(7, numbers(200));
  const auto due = *disk.next_save();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  disk.remember(8, numbers(200));
  disk.remember(7, numbers(500));
  EXPECT_EQ(*disk.next_save(), due) << "before the one that was remembered between";
  for (int n_slices = 0; n_slices < 2; ++n_slices) disk.save_slice();
  EXPECT_GT(*disk.next_save(), due);
  disk.remember(7, numbers(500));
  EXPECT_GT(*disk.next_save(), due) << "what is on disk does not count";
}

TEST_F(DiskPrefixesTest, ALoadThatNobodyWantsAnyMoreIsFreed) {
  store(1, numbers(1000));
  FakeMemory memory;
  DiskPrefixes disk = open(memory);
  disk.begin_load(1, numbers(1000));
  ASSERT_TRUE(disk.is_loading());
  disk.give_up_load();
  while (disk.is_reading()) std::this_thread::yield();
  disk.load_slice();
  EXPECT_FALSE(disk.is_loading());
  EXPECT_TRUE(memory.held.empty()) << "and nothing of it was placed";
  EXPECT_GT(load(disk, 1, numbers(1000)), 0) << "it can be loaded again";
}

// The sanitizers need address space of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(DiskPrefixesTest, WithoutAThreadToReadThePrefixIsComputedAgain) {
  store(1, numbers(1000));
  const auto load_without_room = [&] {
    FakeMemory memory;
    DiskPrefixes disk = open(memory);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, std::size_t{1} << 30);  // no cached stack fits
    pthread_setattr_default_np(&attributes);
    const rlimit little{.rlim_cur = std::size_t{1} << 28, .rlim_max = RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &little);
    disk.begin_load(1, numbers(1000));
    std::_Exit(disk.is_loading() ? 1 : 0);
  };
  EXPECT_EXIT(load_without_room(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace slipstream
