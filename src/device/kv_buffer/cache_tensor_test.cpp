#include "device/kv_buffer/cache_tensor.h"

#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace slipstream::turbo {
namespace {

constexpr std::int64_t kChannels = 256;
constexpr std::int64_t kCells = 40;  // not a multiple of a tile
constexpr std::int64_t kStreams = 2;

class CacheOnce : public testing::Test {
 protected:
  CacheOnce() {
    context_.reset(ggml_init({.mem_size = 4096, .mem_buffer = nullptr, .no_alloc = true}));
    tensor_ = ggml_new_tensor_3d(context_.get(), GGML_TYPE_F16, kChannels, kCells, kStreams);
    ggml_set_name(tensor_, "cache_k_l3");
    cache_ = std::make_unique<CacheTensor>(tensor_);
  }

  std::vector<ggml_fp16_t> random_rows(std::int64_t n_rows, float offset = 0) {
    std::normal_distribution<float> gauss;
    std::vector<ggml_fp16_t> rows(static_cast<std::size_t>(n_rows * kChannels));
    for (ggml_fp16_t& value : rows) value = ggml_fp32_to_fp16(gauss(random_) + offset);
    return rows;
  }

  std::vector<ggml_fp16_t> read(std::int64_t first_row, std::int64_t n_rows) {
    std::vector<ggml_fp16_t> rows(static_cast<std::size_t>(n_rows * kChannels));
    EXPECT_TRUE(cache_->get(std::as_writable_bytes(std::span(rows)),
                            static_cast<std::size_t>(first_row) * cache_->row_bytes()));
    return rows;
  }

  static double relative_error(const std::vector<ggml_fp16_t>& a,
                               const std::vector<ggml_fp16_t>& b) {
    double error = 0;
    double norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double x = ggml_fp16_to_fp32(a[i]);
      const double y = ggml_fp16_to_fp32(b[i]);
      error += (x - y) * (x - y);
      norm += x * x;
    }
    return error / norm;
  }

  std::mt19937 random_{11};
  ggml_context_ptr context_;
  ggml_tensor* tensor_ = nullptr;
  std::unique_ptr<CacheTensor> cache_;
};

class Cache : public CacheOnce, public testing::WithParamInterface<int> {};

double error_bound(int bits) {
  switch (bits) {
    case 2: return 0.15;
    case 3: return 0.04;
    case 4: return 0.011;
    default: return 1e-4;
  }
}

TEST_P(Cache, RowsComeBackWithinTheCodecsErrorAndThenUnchanged) {
  ASSERT_TRUE(cache_->bind_compressed(GetParam(), 128));
  const std::vector<ggml_fp16_t> rows = random_rows(kCells * kStreams);
  ASSERT_TRUE(cache_->set(std::as_bytes(std::span(rows)), 0));
  const std::vector<ggml_fp16_t> once = read(0, kCells * kStreams);
  EXPECT_LT(relative_error(rows, once), error_bound(GetParam()));
  // Writing back what was read changes nothing, so saving and restoring a state loses nothing.
  ASSERT_TRUE(cache_->set(std::as_bytes(std::span(once)), 0));
  EXPECT_EQ(read(0, kCells * kStreams), once);
}

TEST_P(Cache, PartsOfRowsCanBeReadAndWritten) {
  ASSERT_TRUE(cache_->bind_compressed(GetParam(), 128));
  const std::vector<ggml_fp16_t> rows = random_rows(3);
  ASSERT_TRUE(cache_->set(std::as_bytes(std::span(rows)), 5 * cache_->row_bytes()));
  const std::vector<ggml_fp16_t> stored = read(5, 3);
  const std::vector<ggml_fp16_t> neighbour = read(4, 1);  // never written, so it is the centre
  std::vector<std::byte> part(700);
  EXPECT_TRUE(cache_->get(part, 5 * cache_->row_bytes() + 100));
  EXPECT_EQ(std::memcmp(part.data(), std::as_bytes(std::span(stored)).data() + 100, part.size()),
            0);
  // Writing back a part changes neither its rows nor their neighbours.
  ASSERT_TRUE(cache_->set(part, 5 * cache_->row_bytes() + 100));
  EXPECT_EQ(read(5, 3), stored);
  EXPECT_EQ(read(4, 1), neighbour);
}

TEST_P(Cache, ClearAndMemsetGiveZeroes) {
  ASSERT_TRUE(cache_->bind_compressed(GetParam(), 128));
  const std::vector<ggml_fp16_t> rows = random_rows(kCells * kStreams);
  ASSERT_TRUE(cache_->set(std::as_bytes(std::span(rows)), 0));
  ASSERT_TRUE(cache_->memset(0, 2 * cache_->row_bytes(), cache_->row_bytes()));
  for (const ggml_fp16_t value : read(2, 1)) EXPECT_EQ(ggml_fp16_to_fp32(value), 0);
  EXPECT_NE(read(3, 1), std::vector<ggml_fp16_t>(kChannels));
  cache_->clear();
  EXPECT_EQ(read(0, kCells * kStreams), std::vector<ggml_fp16_t>(rows.size()));
}

TEST_P(Cache, AStreamCopiesExactly) {
  ASSERT_TRUE(cache_->bind_compressed(GetParam(), 64));
  const std::vector<ggml_fp16_t> rows = random_rows(kCells * kStreams);
  ASSERT_TRUE(cache_->set(std::as_bytes(std::span(rows)), 0));
  CompressedCache& codes = *cache_->compressed();
  EXPECT_TRUE(codes.copy_stream(0, 1));
  std::vector<std::byte> from(codes.packed_row_bytes());
  std::vector<std::byte> to(from.size());
  for (std::int64_t row = 0; row < kCells; ++row) {
    codes.pack(row, from);
    codes.pack(kCells + row, to);
    EXPECT_EQ(from, to) << row;
  }
}

// A row may be restored, or a stream copied, before the cache has computed anything. Rows that are
// computed later must not move the centre then.
TEST_P(Cache, WhatWasWrittenStaysWhenRowsAreComputedLater) {
  const std::vector<ggml_fp16_t> rows = random_rows(3, 20);
  const std::vector<float> later(static_cast<std::size_t>(kCells * kChannels), 7.0F);
  const std::vector<std::int64_t> later_idx = {10, 11, 12, 13};
  for (const bool by_copy : {false, true}) {
    CacheTensor cache(tensor_);
    ASSERT_TRUE(cache.bind_compressed(GetParam(), 128));
    ASSERT_TRUE(cache.set(std::as_bytes(std::span(rows)), 0));
    if (by_copy) {
      EXPECT_TRUE(cache.compressed()->copy_stream(0, 1));
    }
    EXPECT_TRUE(cache.compressed()->observe(later_idx, std::span(later).first(4 * kChannels)));
    std::vector<ggml_fp16_t> back(rows.size());
    const std::size_t stream = by_copy ? static_cast<std::size_t>(kCells) : 0;
    EXPECT_TRUE(cache.get(std::as_writable_bytes(std::span(back)), stream * cache.row_bytes()));
    EXPECT_LT(relative_error(rows, back), error_bound(GetParam())) << by_copy;
  }
}

INSTANTIATE_TEST_SUITE_P(Bits, Cache, testing::Values(2, 3, 4, 8));

TEST_F(CacheOnce, PlainMemoryIsExactAndUnboundReadsAsZeroes) {
  EXPECT_EQ(read(0, 1), std::vector<ggml_fp16_t>(kChannels));
  const std::vector<ggml_fp16_t> rows = random_rows(2);
  ASSERT_TRUE(cache_->set(std::as_bytes(std::span(rows)), 0));  // binds to plain memory
  EXPECT_NE(cache_->plain(), nullptr);
  EXPECT_EQ(read(0, 2), rows);
}

// If keys have an offset far larger than their variation, the centre takes it, whether they come
// all at once or one by one. Rows written while the centre was still moving stay correct.
TEST_F(CacheOnce, ACentreTakesALargeOffset) {
  for (const std::int64_t batch : {std::int64_t{1}, std::int64_t{5}, kCells}) {
    CacheTensor cache(tensor_);
    ASSERT_TRUE(cache.bind_compressed(4, 128));
    std::normal_distribution<float> gauss;
    std::vector<float> rows(static_cast<std::size_t>(kCells * kChannels));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i] = gauss(random_) + (i % 128 == 60 ? 60.0F : 0.0F);
    }
    for (std::int64_t first = 0; first < kCells; first += batch) {
      std::vector<std::int64_t> row_idx;
      for (std::int64_t i = first; i < std::min(kCells, first + batch); ++i) row_idx.push_back(i);
      const auto start = static_cast<std::size_t>(first * kChannels);
      const std::span part = std::span(rows).subspan(start, row_idx.size() * kChannels);
      EXPECT_TRUE(cache.compressed()->observe(row_idx, part));
      for (const std::int64_t row : row_idx) {
        cache.write_row(
            row, std::span(rows).subspan(static_cast<std::size_t>(row * kChannels), kChannels));
      }
    }
    double error = 0;
    std::vector<float> back(kChannels);
    for (std::int64_t row = 0; row < kCells; ++row) {
      cache.read_row(row, back);
      for (std::size_t i = 0; i < back.size(); ++i) {
        const float x = rows[static_cast<std::size_t>(row * kChannels) + i];
        error += static_cast<double>((x - back[i]) * (x - back[i]));
      }
    }
    // The error per number; without the offset the numbers have variance 1. Without a centre the
    // error is 0.27.
    EXPECT_LT(error / static_cast<double>(rows.size()), 0.015) << "batches of " << batch;
  }
}

// A bad row, such as that of a prompt for which the model computed infinity, concerns only its own
// sequence. But all sequences share the centre.
TEST_F(CacheOnce, ARowThatIsNoNumberDoesNotMoveTheCentre) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity, 1e30F}) {
    for (const std::int64_t bad_row : {std::int64_t{0}, std::int64_t{7}}) {
      CacheTensor cache(tensor_);
      ASSERT_TRUE(cache.bind_compressed(4, 128));
      std::normal_distribution<float> gauss(60);
      double error = 0;
      std::vector<std::vector<float>> rows;
      for (std::int64_t row = 0; row < kCells; ++row) {
        std::vector<float>& numbers = rows.emplace_back(kChannels);
        for (float& number : numbers) number = gauss(random_);
        if (row == bad_row) numbers[5] = bad;
        EXPECT_TRUE(cache.compressed()->observe({&row, 1}, numbers));
        cache.write_row(row, numbers);
      }
      for (const float number : cache.compressed()->centres()) EXPECT_NEAR(number, 60, 1) << bad;
      std::vector<float> back(kChannels);
      for (std::int64_t row = 0; row < kCells; ++row) {
        if (row == bad_row) continue;
        cache.read_row(row, back);
        for (std::size_t i = 0; i < back.size(); ++i) {
          error += std::pow(double{rows[static_cast<std::size_t>(row)][i]} - double{back[i]}, 2);
        }
      }
      EXPECT_LT(error / static_cast<double>((kCells - 1) * kChannels), 0.015) << bad;
    }
  }
}

TEST_F(CacheOnce, KnowsCacheTensorsByName) {
  EXPECT_TRUE(CacheTensor::is_cache(tensor_));
  for (const char* name :
       {"cache_k_l", "cache_k_lx", "cache_r_l0", "leaf_1", "cache_k_l3 (view)"}) {
    ggml_set_name(tensor_, name);
    EXPECT_FALSE(CacheTensor::is_cache(tensor_)) << name;
  }
}

}  // namespace
}  // namespace slipstream::turbo
