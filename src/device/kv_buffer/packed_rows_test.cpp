#include "device/kv_buffer/packed_rows.h"

#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "device/codec/test_bases.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {
namespace {

constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kRowCells = 40;  // not a multiple of a tile
constexpr std::int64_t kRowStreams = 2;

// What a program saves of one cache: its centres, and its rows in the order in which they came.
struct Saved {
  std::vector<std::byte> centres;
  std::vector<std::byte> rows;
  const std::byte* base = nullptr;  // address of the f16 rows that they stand for
  std::size_t n_places = 0;

  static void* place_centres(void* user, int layer, int side, std::size_t n_bytes) {
    auto& self = *static_cast<Saved*>(user);
    EXPECT_EQ(layer, 3);
    EXPECT_LT(side, 2);
    if (!self.centres.empty()) return nullptr;
    self.centres.resize(n_bytes);
    return self.centres.data();
  }
  static void* place_rows(void* user, const void* place, std::size_t n_rows, std::size_t row_bytes,
                          std::size_t packed_row_bytes) {
    auto& self = *static_cast<Saved*>(user);
    if (self.base == nullptr) self.base = static_cast<const std::byte*>(place);
    EXPECT_EQ(place, self.base + self.rows.size() / packed_row_bytes * row_bytes);
    ++self.n_places;
    const std::size_t before = self.rows.size();
    self.rows.resize(before + n_rows * packed_row_bytes);
    return self.rows.data() + before;
  }
  static const void* find_centres(void* user, int /*layer*/, int /*side*/, std::size_t n_bytes) {
    auto& self = *static_cast<Saved*>(user);
    return self.centres.size() == n_bytes ? self.centres.data() : nullptr;
  }
  static const void* find_rows(void* user, const void* place, std::size_t n_rows,
                               std::size_t row_bytes, std::size_t packed_row_bytes) {
    auto& self = *static_cast<Saved*>(user);
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(place) - self.base);
    EXPECT_EQ(offset % row_bytes, 0U);
    const std::size_t start = offset / row_bytes * packed_row_bytes;
    if (start + n_rows * packed_row_bytes > self.rows.size()) return nullptr;
    return self.rows.data() + start;
  }

  bool operator==(const Saved& other) const {
    return centres == other.centres && rows == other.rows;
  }
};

// A cache as the device has it, accessed with the tensor functions of its buffer.
class OneCache {
 public:
  OneCache(Side side, int bits, int head_dim, std::span<const HeadBasis> heads = {})
      : head_dim_(head_dim) {
    context_.reset(ggml_init({.mem_size = 4096, .mem_buffer = nullptr, .no_alloc = true}));
    tensor_ = ggml_new_tensor_3d(context_.get(), GGML_TYPE_F16, head_dim * kHeads, kRowCells,
                                 kRowStreams);
    ggml_set_name(tensor_, side == Side::kKey ? "cache_k_l3" : "cache_v_l3");
    buffer_.reset(ggml_backend_buft_alloc_buffer(type_.handle(), ggml_nbytes(tensor_)));
    tensor_->buffer = buffer_.get();
    tensor_->data = ggml_backend_buffer_get_base(buffer_.get());
    EXPECT_TRUE(find_cache(tensor_)->bind_compressed(bits, head_dim, heads).has_value());
  }

  [[nodiscard]] CacheTensor& cache() const { return *find_cache(tensor_); }
  [[nodiscard]] CompressedCache& codes() const { return *cache().compressed(); }
  [[nodiscard]] std::size_t row_bytes() const { return cache().row_bytes(); }

  // Observes rows, then writes them, as a graph does.
  void compute_rows(std::int64_t first, std::int64_t n, float offset, unsigned seed) const {
    std::mt19937 random(seed);
    std::normal_distribution<float> gauss;
    const auto n_channels = static_cast<std::size_t>(head_dim_ * kHeads);
    std::vector<float> rows(static_cast<std::size_t>(n) * n_channels);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i] = gauss(random) + (i % 16 == 3 ? offset : 0.0F);
    }
    std::vector<std::int64_t> row_idx;
    for (std::int64_t i = 0; i < n; ++i) row_idx.push_back(first + i);
    EXPECT_TRUE(codes().observe(row_idx, rows));
    for (std::size_t i = 0; i < row_idx.size(); ++i) {
      cache().write_row(row_idx[i], std::span(rows).subspan(i * n_channels, n_channels));
    }
  }

  // Ranges of cells. libllama reads rows range by range into one buffer.
  struct Range {
    std::int64_t first;
    std::int64_t n;
  };
  Saved save(const std::vector<Range>& ranges) {
    Saved saved;
    begin_packing(&saved, Saved::place_centres, Saved::place_rows);
    std::byte* at = f16_.data();
    for (const auto [first, n] : ranges) {
      const std::size_t n_bytes = static_cast<std::size_t>(n) * row_bytes();
      ggml_backend_tensor_get(tensor_, at, static_cast<std::size_t>(first) * row_bytes(), n_bytes);
      at += n_bytes;
    }
    EXPECT_TRUE(end_packed_rows());
    saved.base = f16_.data();
    return saved;
  }
  bool restore(Saved& saved, const std::vector<Range>& ranges) {
    begin_unpacking(&saved, Saved::find_centres, Saved::find_rows);
    const std::byte* at = saved.base;
    for (const auto [first, n] : ranges) {
      const std::size_t n_bytes = static_cast<std::size_t>(n) * row_bytes();
      ggml_backend_tensor_set(tensor_, at, static_cast<std::size_t>(first) * row_bytes(), n_bytes);
      at += n_bytes;
    }
    return end_packed_rows();
  }

  // Reads from the codes, which are what is packed, and not from 8-bit copies.
  [[nodiscard]] std::vector<float> read(std::int64_t first, std::int64_t n) const {
    const auto head_dim = static_cast<std::size_t>(head_dim_);
    std::vector<float> rows(static_cast<std::size_t>(n * kHeads) * head_dim);
    std::span<float> rest = rows;
    for (std::int64_t i = 0; i < n * kHeads; ++i, rest = rest.subspan(head_dim)) {
      codes().read(first + i / kHeads, i % kHeads, rest.first(head_dim));
    }
    return rows;
  }

  ggml_tensor* tensor_ = nullptr;
  std::vector<std::byte> f16_ = std::vector<std::byte>(1 << 20);

 private:
  int head_dim_;
  KvBufferType type_{Scheme()};
  ggml_context_ptr context_;
  ggml_backend_buffer_ptr buffer_;
};

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += static_cast<double>((a[i] - b[i]) * (a[i] - b[i]));
    norm += static_cast<double>(a[i] * a[i]);
  }
  return error / norm;
}

class PackedRows : public testing::TestWithParam<std::tuple<Side, int, int>> {
 protected:
  [[nodiscard]] static OneCache make() {
    const auto [side, bits, head_dim] = GetParam();
    return {side, bits, head_dim};
  }
};

// Keys only, because values have no centre.
class PackedKeys : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  [[nodiscard]] static OneCache make() {
    const auto [bits, head_dim] = GetParam();
    return {Side::kKey, bits, head_dim};
  }
};

TEST_P(PackedRows, ComeBackBitByBitInANewCacheAtOtherCells) {
  OneCache cache = make();
  cache.compute_rows(0, kRowCells + 7, 20, 1);
  Saved saved = cache.save({{.first = 3, .n = 30}, {.first = kRowCells + 1, .n = 5}});
  EXPECT_LT(saved.rows.size(), 35 * cache.row_bytes() * 6 / 10);
  OneCache fresh = make();
  ASSERT_TRUE(fresh.restore(saved, {{.first = 0, .n = 35}}));
  EXPECT_EQ(fresh.save({{.first = 0, .n = 35}}), saved);
  EXPECT_EQ(fresh.read(0, 30), cache.read(3, 30));
  EXPECT_EQ(fresh.read(30, 5), cache.read(kRowCells + 1, 5));
  EXPECT_FALSE(fresh.codes().is_centre_open());
}

TEST_P(PackedRows, ComeBackWhenCellsLieApart) {
  OneCache cache = make();
  cache.compute_rows(0, kRowCells, 20, 2);
  Saved saved = cache.save({{.first = 0, .n = 3}});
  OneCache fresh = make();
  ASSERT_TRUE(
      fresh.restore(saved, {{.first = 31, .n = 1}, {.first = 7, .n = 1}, {.first = 50, .n = 1}}));
  EXPECT_EQ(fresh.save({{.first = 31, .n = 1}, {.first = 7, .n = 1}, {.first = 50, .n = 1}}),
            saved);
}

// Rows are restored after others were written over them, and after clear().
TEST_P(PackedRows, ComeBackBitByBitInTheSameCache) {
  OneCache cache = make();
  cache.compute_rows(0, kRowCells, 20, 3);
  Saved saved = cache.save({{.first = 0, .n = kRowCells}});
  cache.compute_rows(0, kRowCells, 20, 4);
  ASSERT_TRUE(cache.restore(saved, {{.first = 0, .n = kRowCells}}));
  EXPECT_EQ(cache.save({{.first = 0, .n = kRowCells}}), saved);
  ggml_backend_buffer_clear(cache.tensor_->buffer, 0);
  ASSERT_TRUE(cache.restore(saved, {{.first = 0, .n = kRowCells}}));
  EXPECT_EQ(cache.save({{.first = 0, .n = kRowCells}}), saved);
}

// Rows are encoded again around the centre that the cache has. The error is no larger than that of
// restored f16 rows.
TEST_P(PackedKeys, AreEncodedAgainAroundAnotherCentre) {
  OneCache cache = make();
  cache.compute_rows(0, kRowCells, 20, 5);
  Saved saved = cache.save({{.first = 0, .n = kRowCells}});
  std::vector<std::byte> f16(static_cast<std::size_t>(kRowCells) * cache.row_bytes());
  ggml_backend_tensor_get(cache.tensor_, f16.data(), 0, f16.size());

  OneCache packed = make();
  OneCache plain = make();
  for (OneCache* other : {&packed, &plain}) other->compute_rows(kRowCells, kRowCells, -5, 6);
  const std::vector<float> kept = packed.read(kRowCells, kRowCells);
  ASSERT_TRUE(packed.restore(saved, {{.first = 0, .n = kRowCells}}));
  ggml_backend_tensor_set(plain.tensor_, f16.data(), 0, f16.size());
  const std::vector<float> expected = cache.read(0, kRowCells);
  const double error = relative_error(expected, packed.read(0, kRowCells));
  EXPECT_GT(error, 0);
  EXPECT_LE(error, relative_error(expected, plain.read(0, kRowCells)) * 1.01 + 1e-9);
  EXPECT_EQ(packed.read(kRowCells, kRowCells), kept);
}

// Rows of a cache with a closed centre bring that centre to a cache whose centre is open. The first
// rows of that cache are kept.
TEST_P(PackedKeys, GiveTheirCentreToACacheWithoutOne) {
  OneCache cache = make();
  cache.compute_rows(0, kRowCells, 20, 7);
  Saved saved = cache.save({{.first = 0, .n = 20}});
  OneCache other = make();
  other.compute_rows(30, 5, -5, 8);
  const std::vector<float> before = other.read(30, 5);
  ASSERT_TRUE(other.restore(saved, {{.first = 0, .n = 20}}));
  EXPECT_EQ(other.save({{.first = 0, .n = 20}}), saved);
  // They are coarser, because their new centre is far away. If they had not been encoded again, the
  // error would be 15 and more.
  EXPECT_LT(relative_error(before, other.read(30, 5)), 4);
}

// If a sequence is shorter than a centre needs, rows that are computed later may still move it.
TEST_P(PackedKeys, LeaveTheCentreOpenThatWasOpen) {
  OneCache cache = make();
  cache.compute_rows(0, 9, 20, 9);
  Saved saved = cache.save({{.first = 0, .n = 9}});
  OneCache fresh = make();
  ASSERT_TRUE(fresh.restore(saved, {{.first = 0, .n = 9}}));
  EXPECT_TRUE(fresh.codes().is_centre_open());
  const std::vector<float> before = fresh.read(0, 9);
  EXPECT_LT(relative_error(cache.read(0, 9), before), std::get<0>(GetParam()) == 2 ? 0.3 : 0.1);
  fresh.compute_rows(9, 30, 20, 10);
  EXPECT_FALSE(fresh.codes().is_centre_open());
  EXPECT_LT(relative_error(before, fresh.read(0, 9)), std::get<0>(GetParam()) == 2 ? 0.3 : 0.1);
}

INSTANTIATE_TEST_SUITE_P(All, PackedRows,
                         testing::Combine(testing::Values(Side::kKey, Side::kValue),
                                          testing::Values(2, 3, 4, 8),
                                          testing::Values(64, 80, 96, 128, 256)));
INSTANTIATE_TEST_SUITE_P(All, PackedKeys,
                         testing::Combine(testing::Values(2, 3, 4, 8),
                                          testing::Values(64, 80, 96, 128, 256)));

// --- what must not be exchanged

class PackedRowsOnce : public testing::Test {
 protected:
  PackedRowsOnce() {
    cache_.compute_rows(0, kRowCells, 20, 11);
    saved_ = cache_.save({{.first = 0, .n = 4}});
  }
  bool restore(const Saved& saved) {
    Saved copy = saved;
    return fresh_.restore(copy, {{.first = 0, .n = 4}});
  }

  OneCache cache_{Side::kKey, 4, 128};
  OneCache fresh_{Side::kKey, 4, 128};
  Saved saved_;
};

TEST(PackedFit, ComesBackBitByBitWithTheSameFitOnly) {
  for (const int bits : {3, 4}) {
    const std::vector<HeadBasis> heads = test_bases(kHeads, 64);
    OneCache from(Side::kKey, bits, 64, heads);
    from.compute_rows(0, 20, 0, 1);
    Saved saved = from.save({{0, 20}});

    OneCache same(Side::kKey, bits, 64, heads);
    ASSERT_TRUE(same.restore(saved, {{7, 20}}));
    EXPECT_EQ(same.read(7, 20), from.read(0, 20));

    OneCache other(Side::kKey, bits, 64, test_bases(kHeads, 64, 2));
    EXPECT_FALSE(other.restore(saved, {{0, 20}}));
    OneCache rotated(Side::kKey, bits, 64);
    EXPECT_FALSE(rotated.restore(saved, {{0, 20}}));
  }
}

TEST_F(PackedRowsOnce, PartsOfRowsAreRefused) {
  const std::vector<std::byte> before(cache_.f16_);
  for (const auto& [offset, n_bytes] : {std::pair{2U, 512U}, std::pair{0U, 100U}}) {
    Saved saved;
    begin_packing(&saved, Saved::place_centres, Saved::place_rows);
    ggml_backend_tensor_get(cache_.tensor_, cache_.f16_.data(), offset, n_bytes);
    EXPECT_FALSE(end_packed_rows());
    EXPECT_EQ(saved.n_places, 0U);
    begin_unpacking(&saved_, Saved::find_centres, Saved::find_rows);
    ggml_backend_tensor_set(fresh_.tensor_, saved_.base, offset, n_bytes);
    EXPECT_FALSE(end_packed_rows());
  }
  EXPECT_EQ(cache_.f16_, before);
  EXPECT_TRUE(fresh_.codes().is_centre_open());
}

TEST_F(PackedRowsOnce, TheSwitchIsOffBeforeAndAfter) {
  EXPECT_TRUE(end_packed_rows());
  std::vector<std::byte> row(cache_.row_bytes());
  ggml_backend_tensor_get(cache_.tensor_, row.data(), 0, row.size());
  const std::vector<float> expected = cache_.read(0, 1);
  ggml_fp16_t half = 0;
  std::memcpy(&half, row.data(), sizeof(half));
  EXPECT_EQ(half, ggml_fp32_to_fp16(expected[0]));
}

TEST_F(PackedRowsOnce, PlainAndUnboundCachesPassAsTheyAre) {
  const ggml_context_ptr context(
      ggml_init({.mem_size = 4096, .mem_buffer = nullptr, .no_alloc = true}));
  ggml_tensor* tensor = ggml_new_tensor_3d(context.get(), GGML_TYPE_F16, 64, 8, 1);
  ggml_set_name(tensor, "cache_v_l0");
  KvBufferType type{Scheme()};
  const ggml_backend_buffer_ptr buffer(
      ggml_backend_buft_alloc_buffer(type.handle(), ggml_nbytes(tensor)));
  tensor->buffer = buffer.get();
  tensor->data = ggml_backend_buffer_get_base(buffer.get());
  std::vector<std::byte> bytes(100, std::byte{7});
  begin_unpacking(&saved_, Saved::find_centres, Saved::find_rows);
  ggml_backend_tensor_set(tensor, bytes.data(), 30, bytes.size());
  EXPECT_TRUE(end_packed_rows());
  Saved saved;
  std::vector<std::byte> back(100);
  begin_packing(&saved, Saved::place_centres, Saved::place_rows);
  ggml_backend_tensor_get(tensor, back.data(), 30, back.size());
  EXPECT_TRUE(end_packed_rows());
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(saved.n_places, 0U);
}

TEST_F(PackedRowsOnce, MissingAndShortPartsAreRefused) {
  Saved saved = saved_;
  saved.rows.pop_back();
  EXPECT_FALSE(restore(saved));
  saved = saved_;
  saved.centres.pop_back();
  EXPECT_FALSE(restore(saved));
  saved.centres.clear();
  EXPECT_FALSE(restore(saved));
  EXPECT_TRUE(restore(saved_));
}

constexpr std::size_t kCentresHeaderBytes = 24;  // docs/formats/packed-state.md

TEST_F(PackedRowsOnce, AnotherShapeIsRefused) {
  for (std::size_t field = 0; field < 4; ++field) {
    Saved saved = saved_;
    std::uint32_t value = 0;
    std::memcpy(&value, saved.centres.data() + field * 4, sizeof(value));
    for (const std::uint32_t wrong : {value + 1 + (field == 3 ? 1 : 0), ~0U}) {
      std::memcpy(saved.centres.data() + field * 4, &wrong, sizeof(wrong));
      EXPECT_FALSE(restore(saved)) << field;
    }
  }
  EXPECT_TRUE(fresh_.codes().is_centre_open());  // no centre was adopted
}

TEST_F(PackedRowsOnce, WhatIsNoNumberIsRefused) {
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 1e30F}) {
    Saved saved = saved_;
    std::memcpy(saved.centres.data() + kCentresHeaderBytes + 5 * sizeof(float), &wrong,
                sizeof(wrong));
    EXPECT_FALSE(restore(saved)) << wrong;
  }
  EXPECT_TRUE(fresh_.codes().is_centre_open());
  for (const int bits : {0x7c00, 0xfc00, 0x7e01}) {
    const auto wrong = static_cast<std::uint16_t>(bits);
    Saved saved = saved_;
    std::memcpy(saved.rows.data() + fresh_.codes().packed_row_bytes() / kHeads, &wrong,
                sizeof(wrong));
    EXPECT_FALSE(restore(saved)) << wrong;
  }
}

// Any codes with finite scales form a row: reading it gives finite numbers.
TEST_F(PackedRowsOnce, AnyCodesAreNumbers) {
  std::mt19937 random(12);
  for (const int bits : {2, 3, 4, 8}) {
    for (const Side side : {Side::kKey, Side::kValue}) {
      OneCache cache(side, bits, 80);
      cache.compute_rows(0, kRowCells, 0, 13);
      Saved saved = cache.save({{.first = 0, .n = kRowCells}});
      for (std::byte& byte : saved.rows) byte = static_cast<std::byte>(random() & 0xbbU);
      for (const bool is_new : {false, true}) {
        OneCache other(side, bits, 80);
        if (!is_new) other.compute_rows(0, kRowCells, 3, 14);
        ASSERT_TRUE(other.restore(saved, {{.first = 0, .n = kRowCells}}));
        for (const float value : other.read(0, kRowCells)) ASSERT_TRUE(std::isfinite(value));
      }
    }
  }
}

}  // namespace
}  // namespace slipstream::turbo
