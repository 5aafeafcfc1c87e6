// The 8-bit copies of chunks hold what was written last.
#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "device/kv_buffer/cache_tensor.h"
#include "device/kv_buffer/compressed_cache.h"
#include "device/kv_buffer/precise_chunks.h"

namespace slipstream::turbo {
namespace {

using CopyRows = std::vector<std::int64_t>;
using CopyPlace = std::pair<const CompressedCache*, std::int64_t>;

CopyRows copy_rows(std::int64_t first, std::int64_t end) {
  CopyRows rows(static_cast<std::size_t>(end - first));
  std::ranges::iota(rows, first);
  return rows;
}

constexpr int kCopyDim = 80;
constexpr std::int64_t kCopyHeads = 2;
constexpr std::size_t kCopyChannels = kCopyDim * kCopyHeads;
// A bound for the mean square error of 8 bits, for numbers of variance 1, or 2 around a centre of
// few rows. That of 4 bits is 0.01.
constexpr double kCopyError = 4e-4;

double mean_square(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>((a[i] - b[i]) * (a[i] - b[i]));
  return sum / static_cast<double>(a.size());
}

class CopyCache {
 public:
  CopyCache(Side side, int bits, std::int64_t n_cells, std::int64_t n_streams)
      : cache(CompressedCache::create({.side = side,
                                       .bits = bits,
                                       .head_dim = kCopyDim,
                                       .n_heads = kCopyHeads,
                                       .n_cells = n_cells,
                                       .n_streams = n_streams})
                  .value()),
        scratch(std::make_shared<CompressedCache>(
            CompressedCache::create(
                PreciseChunks::scratch_shape(cache.shape(), n_cells * n_streams))
                .value())) {}

  // Keys get an offset, which their centre takes.
  std::vector<float> random_row() {
    std::normal_distribution<float> gauss;
    std::vector<float> row(kCopyChannels);
    const float offset = cache.shape().side == Side::kKey ? 20 : 0;
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = gauss(random) + (i % 16 == 3 ? offset : 0);
    return row;
  }

  // Writes as a graph does, but without keep_precise().
  void write(const CopyRows& rows, const std::vector<std::vector<float>>& vectors) {
    std::vector<float> shown;
    for (const std::vector<float>& vector : vectors) shown.append_range(vector);
    EXPECT_TRUE(cache.observe(rows, shown));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::int64_t head = 0; head < kCopyHeads; ++head) {
        cache.write(rows[i], head, std::span(vectors[i]).subspan(first_of(head), kCopyDim));
      }
    }
  }
  std::vector<std::vector<float>> write_random(const CopyRows& rows) {
    std::vector<std::vector<float>> vectors;
    for (std::size_t i = 0; i < rows.size(); ++i) vectors.push_back(random_row());
    write(rows, vectors);
    return vectors;
  }
  void keep(const CopyRows& rows) { EXPECT_TRUE(cache.keep_precise(rows, scratch)); }

  [[nodiscard]] CopyPlace place_of(std::int64_t row) const {
    const std::int64_t n_cells = cache.shape().n_cells;
    const auto [tiles, idx] = cache.precise(row / n_cells, row % n_cells / kChunkTokens);
    return {tiles, idx};
  }
  [[nodiscard]] std::vector<float> copy(std::int64_t row) const {
    const auto [tiles, idx] = place_of(row);
    std::vector<float> vector(kCopyChannels);
    const std::int64_t cell = row % cache.shape().n_cells;
    for (std::int64_t head = 0; head < kCopyHeads; ++head) {
      const std::span part = std::span(vector).subspan(first_of(head), kCopyDim);
      tiles->read(idx * kChunkTokens + cell % kChunkTokens, head, part);
      std::ranges::transform(part, cache.centre(head), part.begin(), std::plus<>());
    }
    return vector;
  }
  [[nodiscard]] std::vector<float> read_precise(std::int64_t row) const {
    std::vector<float> vector(kCopyChannels);
    for (std::int64_t head = 0; head < kCopyHeads; ++head) {
      cache.read_precise(row, head, std::span(vector).subspan(first_of(head), kCopyDim));
    }
    return vector;
  }
  [[nodiscard]] std::vector<float> coded(std::int64_t row) const {
    std::vector<float> vector(kCopyChannels);
    for (std::int64_t head = 0; head < kCopyHeads; ++head) {
      cache.read(row, head, std::span(vector).subspan(first_of(head), kCopyDim));
    }
    return vector;
  }

  CompressedCache cache;
  std::shared_ptr<CompressedCache> scratch;
  std::mt19937 random{31};

 private:
  static std::size_t first_of(std::int64_t head) {
    return static_cast<std::size_t>(head) * kCopyDim;
  }
};

class PreciseCopies : public testing::TestWithParam<std::tuple<Side, int>> {
 protected:
  [[nodiscard]] static CopyCache make(std::int64_t n_cells, std::int64_t n_streams) {
    const auto [side, bits] = GetParam();
    return {side, bits, n_cells, n_streams};
  }
};

// A naive model of arbitrary writes to several streams. It knows which rows were written while they
// had a copy that has stayed since.
class CopyModel {
 public:
  CopyModel(CopyCache& cache, std::int64_t n_rows)
      : cache_(cache), rows_(static_cast<std::size_t>(n_rows)) {}

  void write(const CopyRows& rows) {
    const std::vector<CopyPlace> before = places();
    cache_.keep(rows);
    const std::vector<CopyPlace> after = places();
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const bool stays = after[row] == before[row] && !is_scratch(after[row]);
      rows_[row].is_precise = rows_[row].is_precise && stays;
      if (is_scratch(after[row])) {
        EXPECT_TRUE(std::ranges::contains(rows, static_cast<std::int64_t>(row))) << row;
      }
    }
    for (const std::int64_t row : rows) {
      expect_stays(row, before, after);
      const std::int64_t cell = row % cache_.cache.shape().n_cells;
      if (cell >= kChunkTokens) expect_stays(row - kChunkTokens, before, after);
    }
    const std::vector<std::vector<float>> vectors = cache_.write_random(rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Row& row = rows_[static_cast<std::size_t>(rows[i])];
      row.vector = vectors[i];
      row.is_precise = cache_.place_of(rows[i]).first != nullptr;
    }
  }

  void check() const {
    std::map<CopyPlace, std::int64_t> chunks;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      const CopyPlace place = cache_.place_of(row);
      if (place.first == nullptr) continue;
      const std::int64_t n_cells = cache_.cache.shape().n_cells;
      const std::int64_t chunk = row / n_cells * 1000 + row % n_cells / kChunkTokens;
      ASSERT_EQ(chunks.try_emplace(place, chunk).first->second, chunk) << "two in one place";
      const std::vector<float> copy = cache_.copy(row);
      double error = rows_[i].vector.empty() ? 1 : mean_square(copy, rows_[i].vector);
      // Rows are written again when the centre moves, and are then as precise as new ones.
      if (!rows_[i].is_precise) error = std::min(error, mean_square(copy, cache_.coded(row)));
      ASSERT_LT(error, kCopyError) << "row " << row << " precise " << rows_[i].is_precise;
    }
  }

  [[nodiscard]] std::int64_t n_precise() const {
    return std::ranges::count_if(rows_, &Row::is_precise);
  }

 private:
  struct Row {
    std::vector<float> vector;  // empty: never written
    bool is_precise = false;
  };

  [[nodiscard]] std::vector<CopyPlace> places() const {
    std::vector<CopyPlace> found(rows_.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      found[i] = cache_.place_of(static_cast<std::int64_t>(i));
    }
    return found;
  }
  [[nodiscard]] bool is_scratch(const CopyPlace& place) const {
    return place.first == cache_.scratch.get();
  }
  void expect_stays(std::int64_t row, const std::vector<CopyPlace>& before,
                    const std::vector<CopyPlace>& after) const {
    const CopyPlace& was = before[static_cast<std::size_t>(row)];
    if (was.first == nullptr || is_scratch(was)) return;
    EXPECT_EQ(was, after[static_cast<std::size_t>(row)]) << "row " << row << " was taken away";
  }

  CopyCache& cache_;
  std::vector<Row> rows_;
};

TEST_P(PreciseCopies, AreOfWhatWasWrittenLast) {
  constexpr std::int64_t kModelCells = 300;  // the last chunk is not a whole one
  constexpr std::int64_t kModelStreams = 3;
  CopyCache cache = make(kModelCells, kModelStreams);
  CopyModel model(cache, kModelCells * kModelStreams);
  std::mt19937 random(37);
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  for (int call = 0; call < 80; ++call) {
    std::set<std::int64_t> rows;
    const std::int64_t kind = below(4);
    for (std::int64_t stream = 0; stream < kModelStreams; ++stream) {
      if (below(3) == 0 && !(stream == kModelStreams - 1 && rows.empty())) continue;
      const std::int64_t first = below(kModelCells);
      std::int64_t n = 1;                                 // a token
      if (kind == 1) n = 1 + below(kModelCells - first);  // a prompt
      if (kind == 2) n = std::min(kModelCells - first, 5L);
      for (std::int64_t i = 0; i < n; ++i) rows.insert(stream * kModelCells + first + i);
      for (std::int64_t i = 0; kind == 3 && i < 20; ++i) {  // several sequences of a stream
        rows.insert(stream * kModelCells + below(kModelCells));
      }
    }
    ASSERT_NO_FATAL_FAILURE(model.write({rows.begin(), rows.end()})) << "call " << call;
    ASSERT_NO_FATAL_FAILURE(model.check()) << "call " << call;
    ASSERT_FALSE(HasFailure()) << "call " << call;
  }
  EXPECT_GT(model.n_precise(), 0);
}

TEST_P(PreciseCopies, AChunkThatHoldsRowsIsFilledFromTheirCodes) {
  CopyCache cache = make(256, 2);
  const CopyRows rows = copy_rows(256, 256 + 100);
  const std::vector<std::vector<float>> vectors = cache.write_random(rows);
  EXPECT_EQ(cache.place_of(256 + 64).first, nullptr);
  cache.keep({256 + 70});
  EXPECT_EQ(cache.place_of(256).first, nullptr);
  EXPECT_EQ(cache.place_of(64).first, nullptr);  // in the other stream
  ASSERT_NE(cache.place_of(256 + 64).first, nullptr);
  for (std::int64_t row = 256 + 64; row < 256 + 128; ++row) {
    EXPECT_LT(mean_square(cache.copy(row), cache.coded(row)), kCopyError) << row;
  }
  // These copies are no better than the codes; that of the next written row is.
  EXPECT_GT(mean_square(cache.copy(256 + 70), vectors[70]), 4 * kCopyError);
  const std::vector<std::vector<float>> again = cache.write_random({256 + 70});
  EXPECT_LT(mean_square(cache.copy(256 + 70), again[0]), kCopyError);
}

TEST_P(PreciseCopies, AreReadWhereThereAreAny) {
  CopyCache cache = make(640, 1);
  cache.write_random(copy_rows(0, 640));
  cache.keep({100});
  cache.write_random({100});
  for (std::int64_t row = 0; row < 640; ++row) {
    EXPECT_EQ(cache.read_precise(row), row / 64 == 1 ? cache.copy(row) : cache.coded(row)) << row;
  }
}

// Two caches share a scratch, as layers do. Once the second has used it, the copies that the first
// had in it are gone.
TEST_P(PreciseCopies, AreNotThoseOfAnotherCacheWithTheSameScratch) {
  CopyCache cache = make(640, 1);
  CopyCache other = make(640, 1);
  other.scratch = cache.scratch;
  const CopyRows rows = copy_rows(0, 640);
  for (CopyCache* one : {&cache, &other}) one->keep(rows);
  const std::vector<std::vector<float>> vectors = cache.write_random(rows);
  other.random.seed(32);
  other.write_random(rows);
  for (const std::int64_t row : rows) {
    // The mean square difference to other rows of variance 1 would be 2.
    const auto i = static_cast<std::size_t>(row);
    ASSERT_LT(mean_square(cache.read_precise(row), vectors[i]), 0.5) << row;
  }
}

TEST_P(PreciseCopies, ARowOfNothingInAUsedSlotReadsAsNothing) {
  CopyCache cache = make(4096, 1);
  cache.cache.close_centre();
  const std::int64_t n_slots =
      PreciseChunks::slots_shape(cache.cache.shape()).n_cells / kChunkTokens;
  for (std::int64_t chunk = 0; chunk < n_slots; ++chunk) {
    const CopyRows rows = copy_rows(chunk * kChunkTokens, (chunk + 1) * kChunkTokens);
    cache.keep(rows);
    cache.write_random(rows);
  }
  const CopyPlace used = cache.place_of(kChunkTokens);
  const std::int64_t row = n_slots * kChunkTokens + 1;
  const std::vector<float> nothing(kCopyChannels);
  cache.keep({row});
  ASSERT_EQ(cache.place_of(row), used);
  EXPECT_EQ(cache.place_of(kChunkTokens).first, nullptr);
  cache.write({row}, {nothing});
  for (std::int64_t other = row - 1; other < row + kChunkTokens - 1; ++other) {
    EXPECT_EQ(cache.copy(other), nothing) << other;
  }
  cache.write_random({row});
  EXPECT_NE(cache.copy(row), nothing);
  cache.write({row}, {nothing});
  EXPECT_EQ(cache.copy(row), nothing);
}

TEST_P(PreciseCopies, AreForgottenWithTheirStream) {
  CopyCache cache = make(256, 2);
  const CopyRows rows = {3, 70, 256 + 3, 256 + 70};
  cache.keep(rows);
  cache.write_random(rows);
  EXPECT_TRUE(cache.cache.copy_stream(0, 1));
  EXPECT_NE(cache.place_of(3).first, nullptr);
  EXPECT_NE(cache.place_of(70).first, nullptr);
  EXPECT_EQ(cache.place_of(256 + 3).first, nullptr);
  EXPECT_EQ(cache.place_of(256 + 70).first, nullptr);
  cache.keep({256 + 71});
  EXPECT_LT(mean_square(cache.copy(256 + 70), cache.coded(70)), kCopyError);
  cache.cache.clear();
  for (const std::int64_t row : rows) EXPECT_EQ(cache.place_of(row).first, nullptr) << row;
  cache.keep({71});
  EXPECT_EQ(cache.copy(70), std::vector<float>(kCopyChannels));
}

TEST_P(PreciseCopies, FollowRowsThatAreUnpacked) {
  CopyCache from = make(256, 1);
  const CopyRows rows = copy_rows(0, 40);
  from.write_random(rows);
  CopyCache into = make(256, 1);
  into.keep({70});
  into.write_random({70});
  if (into.cache.is_centre_open()) {
    EXPECT_TRUE(into.cache.adopt_centres(from.cache.centres()));
  }
  std::vector<std::byte> packed(from.cache.packed_row_bytes());
  for (const std::int64_t row : {5, 6}) {
    from.cache.pack(row, packed);
    ASSERT_TRUE(into.cache.unpack(row == 5 ? 70 : 100, packed));
  }
  EXPECT_LT(mean_square(into.copy(70), from.coded(5)), kCopyError);
  EXPECT_LT(mean_square(into.copy(100), from.coded(6)), kCopyError);
  // Rows that were encoded around another centre.
  std::vector<float> centres(from.cache.centres().begin(), from.cache.centres().end());
  std::vector<float> wanted = from.coded(7);
  for (float& channel : centres) channel += 0.5F;
  for (float& channel : wanted) channel += 0.5F;
  from.cache.pack(7, packed);
  ASSERT_TRUE(into.cache.unpack(70, packed));
  EXPECT_TRUE(into.cache.recentre(70, 1, centres));
  EXPECT_LT(mean_square(into.copy(70), wanted), kCopyError);
}

INSTANTIATE_TEST_SUITE_P(All, PreciseCopies,
                         testing::Combine(testing::Values(Side::kKey, Side::kValue),
                                          testing::Values(2, 3, 4)));

// Sets f16 rows and parts of them, as when a state is restored.
TEST(PreciseCopiesOnce, FollowRowsThatAreSet) {
  const ggml_context_ptr context(
      ggml_init({.mem_size = 4096, .mem_buffer = nullptr, .no_alloc = true}));
  ggml_tensor* tensor = ggml_new_tensor_3d(context.get(), GGML_TYPE_F16, 128, 256, 1);
  for (const char* name : {"cache_k_l0", "cache_v_l0"}) {
    ggml_set_name(tensor, name);
    CacheTensor cache(tensor);
    ASSERT_TRUE(cache.bind_compressed(3, 128));
    EXPECT_TRUE(cache.compressed()->keep_precise(CopyRows{70}, nullptr));
    std::mt19937 random(41);
    std::normal_distribution<float> gauss;
    std::vector<ggml_fp16_t> rows(128UL * 256);
    for (ggml_fp16_t& value : rows) value = ggml_fp32_to_fp16(gauss(random));
    const auto [tiles, idx] = cache.compressed()->precise(0, 1);
    ASSERT_NE(tiles, nullptr);
    const auto copy = [&](std::int64_t row) {
      std::vector<float> vector(128);
      tiles->read(idx * kChunkTokens + row - 64, 0, vector);
      std::ranges::transform(vector, cache.compressed()->centre(0), vector.begin(), std::plus<>());
      return vector;
    };
    const auto given = [&](std::int64_t row) {
      std::vector<float> vector(128);
      ggml_fp16_to_fp32_row(rows.data() + row * 128, vector.data(), 128);
      return vector;
    };
    ASSERT_TRUE(cache.set(std::as_bytes(std::span(rows)), 0));
    for (std::int64_t row = 64; row < 128; ++row) {
      EXPECT_LT(mean_square(copy(row), given(row)), kCopyError) << name << " row " << row;
    }
    // Sets the second half of a row to the first half of another.
    std::vector<float> wanted(128);
    cache.read_row(100, wanted);
    std::ranges::copy_n(given(0).begin(), 64, wanted.begin() + 64);
    const std::span half = std::as_bytes(std::span(rows)).first(128);
    ASSERT_TRUE(cache.set(half, 100 * cache.row_bytes() + 128));
    EXPECT_LT(mean_square(copy(100), wanted), kCopyError) << name;
    ASSERT_TRUE(cache.memset(0, 101 * cache.row_bytes(), cache.row_bytes()));
    EXPECT_LT(mean_square(copy(101), std::vector<float>(128)), kCopyError) << name;
  }
}

// The end of a restored state is as precise as if it had been computed, and it is saved with the
// same precision.
TEST(PreciseCopiesOnce, AreKeptOfRowsThatAreSet) {
  const ggml_context_ptr context(
      ggml_init({.mem_size = 4096, .mem_buffer = nullptr, .no_alloc = true}));
  ggml_tensor* tensor = ggml_new_tensor_3d(context.get(), GGML_TYPE_F16, 128, 640, 1);
  ggml_set_name(tensor, "cache_v_l0");
  CacheTensor cache(tensor);
  ASSERT_TRUE(cache.bind_compressed(3, 128));
  std::mt19937 random(43);
  std::normal_distribution<float> gauss;
  std::vector<ggml_fp16_t> rows(128UL * 640);
  for (ggml_fp16_t& value : rows) value = ggml_fp32_to_fp16(gauss(random));
  ASSERT_TRUE(cache.set(std::as_bytes(std::span(rows)), 0));
  std::vector<float> given(128);
  std::vector<float> found(128);
  for (std::int64_t row = 0; row < 640; ++row) {
    ggml_fp16_to_fp32_row(rows.data() + row * 128, given.data(), 128);
    cache.read_row(row, found);
    const std::int64_t chunk = row / kChunkTokens;
    const bool is_kept = chunk == 0 || chunk >= 8;
    EXPECT_EQ(mean_square(found, given) < kCopyError, is_kept) << row;
  }
}

TEST(PreciseCopiesOnce, TheirSlotsAreCounted) {
  for (const Side side : {Side::kKey, Side::kValue}) {
    for (const int bits : {2, 3, 4, 8}) {
      const CacheShape shape{.side = side,
                             .bits = bits,
                             .head_dim = 128,
                             .n_heads = 2,
                             .n_cells = 4096,
                             .n_streams = 2};
      const auto tiles_bytes = [](int width, int n_scales, std::int64_t n_cells) {
        const auto scales = static_cast<std::size_t>(n_scales) * kTileTokens;
        return static_cast<std::size_t>(n_cells / kTileTokens) * 2 *
               (tile_code_bytes(width, 128) + scales * sizeof(std::uint16_t));
      };
      std::size_t wanted = tiles_bytes(bits, n_scales(side, bits, 128), 2 * shape.n_cells);
      if (bits != 8) wanted += tiles_bytes(8, 1, 2 * kChunkTokens * precise_slots(shape.n_cells));
      EXPECT_EQ(CompressedCache::n_bytes(shape), wanted) << bits;
      EXPECT_EQ(CompressedCache::create(shape)->has_precise(), bits != 8);
    }
  }
  // There are more if there is room for several sequences, but never more than there are chunks.
  EXPECT_EQ(precise_slots(kChunkTokens), 1);
  EXPECT_EQ(precise_slots(kChunkTokens + 1), 2);
  EXPECT_GE(precise_slots(4096), 3);
  EXPECT_GT(precise_slots(1 << 16), precise_slots(4096));
  EXPECT_EQ(precise_slots(1L << 40), precise_slots(1L << 30) << 10);
}

}  // namespace
}  // namespace slipstream::turbo
