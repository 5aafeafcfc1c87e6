#include "device/experts/expert_layer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <numeric>
#include <random>
#include <set>

namespace slipstream::turbo {
namespace {

constexpr int kExperts = 24;

// Two matrices in one file. The size of their slabs is a multiple of the block size in some cases
// and not in others.
class ExpertLayerTest : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    std::mt19937 random(5);
    content_.resize(kHeader + 2 * kExperts * GetParam());
    for (std::byte& byte : content_) byte = static_cast<std::byte>(random());
    Result<UniqueFd> out = open_file(path_, O_CREAT | O_TRUNC | O_WRONLY);
    ASSERT_TRUE(out);
    ASSERT_TRUE(write_exactly(out->get(), content_));
    Result<DataFile> file = open_data_file(path_, ReadMethod::kUringDirect);
    ASSERT_TRUE(file) << file.error().message;
    file_ = std::make_unique<DataFile>(std::move(*file));
    for (std::size_t i = 0; i < 2; ++i) {
      layer_.add({.address = nullptr,
                  .name = "matrix",
                  .file = file_.get(),
                  .offset = kHeader + i * kExperts * GetParam(),
                  .slab_bytes = GetParam(),
                  .arena = {}});
    }
  }
  void TearDown() override {
    reader_.wait_for_all();
    std::filesystem::remove(path_);
  }

  [[nodiscard]] bool holds(std::size_t matrix_idx, int expert, int slot) {
    ExpertMatrix& matrix = layer_.matrices()[matrix_idx];
    const std::span slab(matrix.arena.bytes().data() +
                             static_cast<std::size_t>(slot) * matrix.slot_bytes() +
                             matrix.start_in_slot(),
                         matrix.slab_bytes);
    return std::ranges::equal(
        slab, std::span(content_).subspan(
                  matrix.offset + static_cast<std::size_t>(expert) * matrix.slab_bytes,
                  matrix.slab_bytes));
  }

  // Goes through the turns of a batch as a graph does, and checks what the slots hold.
  void run(std::vector<int> experts) {
    const std::vector<Turn>& turns = layer_.plan(experts, reader_);
    std::set<int> seen;
    for (const Turn& turn : turns) {
      for (const Placement& placement : turn) {
        EXPECT_TRUE(seen.insert(placement.expert).second) << "each expert comes once";
      }
    }
    EXPECT_TRUE(std::ranges::equal(seen, std::set(experts.begin(), experts.end())));
    for (std::size_t i = 0; i + 1 < turns.size(); ++i) {
      for (const Placement& placement : turns[i + 1]) {
        EXPECT_TRUE(!placement.is_read ||
                    !std::ranges::contains(turns[i], placement.slot, &Placement::slot))
            << "read while it is computed with";
      }
    }
    if (turns.size() == 1) {
      ASSERT_TRUE(layer_.read_all(turns[0], reader_));
      for (const Placement& placement : turns[0]) {
        for (std::size_t i = 0; i < 2; ++i) ASSERT_TRUE(holds(i, placement.expert, placement.slot));
      }
      return;
    }
    for (std::size_t i = 0; i < 2; ++i) {
      for (const Turn& turn : turns) {
        ExpertMatrix& matrix = layer_.matrices()[i];
        ASSERT_TRUE(
            layer_.finish_reads(turn, matrix, layer_.start_reads(turn, matrix, reader_), reader_));
        for (const Placement& placement : turn) {
          ASSERT_TRUE(holds(i, placement.expert, placement.slot));
        }
      }
      layer_.finish_matrix();
    }
  }

  static constexpr std::size_t kHeader = 4096 + 160;
  const std::string path_ = "/var/tmp/expert_layer_test." + std::to_string(::getpid());
  std::vector<std::byte> content_;
  std::unique_ptr<DataFile> file_;
  SlabReader reader_{ReadMethod::kUringDirect};
  ExpertLayer layer_{0, kExperts};
};

std::vector<int> random_batch(std::mt19937& random, std::size_t n_max) {
  std::vector<int> all(kExperts);
  std::iota(all.begin(), all.end(), 0);
  std::ranges::shuffle(all, random);
  all.resize(1 + random() % n_max);
  return all;
}

TEST_P(ExpertLayerTest, SlotsHoldWhatTheyShouldForEveryCacheSize) {
  for (int n_slots = 1; n_slots <= kExperts; n_slots += n_slots < 4 ? 1 : 5) {
    ASSERT_TRUE(layer_.allocate(n_slots, CachePolicy::kAutomatic));
    std::mt19937 random(9);
    for (int i = 0; i < 40; ++i) {
      run(random_batch(random, kExperts));
      layer_.guess(random_batch(random, 4), reader_);
      run(random_batch(random, 4));
    }
  }
}

TEST_P(ExpertLayerTest, ReadsNothingTwiceForABatch) {
  ASSERT_TRUE(layer_.allocate(6, CachePolicy::kLeastRecent));
  std::vector<int> all(kExperts);
  std::iota(all.begin(), all.end(), 0);
  run(all);
  EXPECT_EQ(layer_.counters().n_bytes_read, 2 * kExperts * GetParam());
  run({0});
  const std::uint64_t n_bytes = layer_.counters().n_bytes_read;
  run({0});
  EXPECT_EQ(layer_.counters().n_bytes_read, n_bytes) << "it is there";
}

TEST_P(ExpertLayerTest, AGuessThatWasRightNeedsNoRead) {
  ASSERT_TRUE(layer_.allocate(8, CachePolicy::kLeastRecent));
  layer_.guess(std::vector{3, 4}, reader_);
  run({3, 4, 5});
  EXPECT_EQ(layer_.counters().n_guessed, 2U);
  EXPECT_EQ(layer_.counters().n_guessed_used, 2U);
  EXPECT_EQ(layer_.counters().n_misses, 1U);
}

TEST_P(ExpertLayerTest, WhatCouldNotBeReadIsReadAgain) {
  ASSERT_TRUE(layer_.allocate(8, CachePolicy::kLeastRecent));
  reader_.set_fault([](const FilePiece&) { return EIO; });
  const std::vector<Turn>& turns = layer_.plan(std::vector{1, 2}, reader_);
  EXPECT_FALSE(layer_.read_all(turns[0], reader_));
  layer_.guess(std::vector{7}, reader_);
  EXPECT_EQ(layer_.slots().slot_of(1), -1);
  reader_.set_fault(nullptr);
  run({1, 2, 7});
}

TEST_P(ExpertLayerTest, TurnsThatWereNotFinishedLeaveNothingBehind) {
  ASSERT_TRUE(layer_.allocate(4, CachePolicy::kLeastRecent));
  run({0, 1});
  // The first matrix goes through its turns, the second does not: its slots do not hold what the
  // plan says.
  const std::vector<Turn> turns = layer_.plan(std::vector{0, 1, 2, 3, 4, 5, 6, 7}, reader_);
  ASSERT_GT(turns.size(), 1U);
  for (const Turn& turn : turns) {
    ExpertMatrix& matrix = layer_.matrices()[0];
    ASSERT_TRUE(
        layer_.finish_reads(turn, matrix, layer_.start_reads(turn, matrix, reader_), reader_));
  }
  layer_.finish_matrix();
  run({4, 5, 6});
}

INSTANTIATE_TEST_SUITE_P(SlabBytes, ExpertLayerTest, testing::Values(8192, 5000, 34'560),
                         [](const auto& slab) { return std::to_string(slab.param); });

}  // namespace
}  // namespace slipstream::turbo
