// Which chunks are kept in 8 bits, and where.
#include "device/kv_buffer/precise_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace slipstream::turbo {
namespace {

using Rows = std::vector<std::int64_t>;
using Scratch8 = std::shared_ptr<CompressedCache>;
using Place = std::pair<const CompressedCache*, std::int64_t>;

Rows rows_between(std::int64_t first, std::int64_t end) {
  Rows rows(static_cast<std::size_t>(end - first));
  std::ranges::iota(rows, first);
  return rows;
}

Scratch8 scratch_for(const CacheShape& shape, std::int64_t n_rows) {
  return std::make_shared<CompressedCache>(
      CompressedCache::create(PreciseChunks::scratch_shape(shape, n_rows)).value());
}

class ChunkBook {
 public:
  explicit ChunkBook(std::int64_t n_cells, std::int64_t n_streams = 1)
      : shape_{.side = Side::kKey,
               .bits = 4,
               .head_dim = 64,
               .n_heads = 1,
               .n_cells = n_cells,
               .n_streams = n_streams},
        scratch_(scratch_for(shape_, n_cells * n_streams)),
        chunks_(shape_, CompressedCache::create(PreciseChunks::slots_shape(shape_)).value()) {}

  Rows keep(const Rows& rows) { return chunks_.keep(rows, scratch_); }
  [[nodiscard]] Place at(std::int64_t chunk) {
    const auto [tiles, idx] = chunks_.place(chunk);
    return {tiles, idx};
  }
  [[nodiscard]] bool has(std::int64_t chunk) { return at(chunk).first != nullptr; }
  [[nodiscard]] bool passes(std::int64_t chunk) { return at(chunk).first == scratch_.get(); }
  [[nodiscard]] bool is_in_slot(std::int64_t chunk) { return has(chunk) && !passes(chunk); }
  [[nodiscard]] std::int64_t n_slots() const {
    return PreciseChunks::slots_shape(shape_).n_cells / kChunkTokens;
  }
  // The number of the first n_chunks chunks that have a place. Checks that no two share one.
  std::int64_t n_places(std::int64_t n_chunks) {
    std::set<Place> places;
    std::int64_t n = 0;
    for (std::int64_t chunk = 0; chunk < n_chunks; ++chunk) {
      if (!has(chunk)) continue;
      ++n;
      EXPECT_TRUE(places.insert(at(chunk)).second) << "chunk " << chunk << " is not alone";
    }
    return n;
  }

  PreciseChunks& chunks() { return chunks_; }
  [[nodiscard]] const CacheShape& shape() const { return shape_; }

 private:
  CacheShape shape_;
  Scratch8 scratch_;
  PreciseChunks chunks_;
};

TEST(PreciseChunks, TokenByTokenTheFirstAndTheLastTwoStay) {
  constexpr std::int64_t kManyCells = 20L * kChunkTokens;
  ChunkBook book(kManyCells);
  std::map<std::int64_t, Place> before;
  for (std::int64_t cell = 0; cell < kManyCells; ++cell) {
    const std::int64_t own = cell / kChunkTokens;
    const bool is_new = cell % kChunkTokens == 0;
    EXPECT_EQ(book.keep({cell}), is_new ? Rows{own} : Rows{}) << cell;
    for (const std::int64_t chunk : std::set<std::int64_t>{0, std::max(0L, own - 1), own}) {
      ASSERT_TRUE(book.is_in_slot(chunk)) << "chunk " << chunk << " at cell " << cell;
      const auto [known, is_first] = before.try_emplace(chunk, book.at(chunk));
      ASSERT_EQ(known->second, book.at(chunk)) << "chunk " << chunk << " at cell " << cell;
    }
    ASSERT_LE(book.n_places(20), book.n_slots());
  }
}

TEST(PreciseChunks, ThoseInsideAPromptPassThroughTheScratch) {
  ChunkBook book(20L * kChunkTokens);
  EXPECT_EQ(book.keep(rows_between(0, 530)), Rows{8});  // the others are written completely
  for (const std::int64_t chunk : {0, 7, 8}) EXPECT_TRUE(book.is_in_slot(chunk)) << chunk;
  for (std::int64_t chunk = 1; chunk < 7; ++chunk) EXPECT_TRUE(book.passes(chunk)) << chunk;
  EXPECT_EQ(book.n_places(20), 9);
  EXPECT_EQ(book.keep({530}), Rows{});
  for (const std::int64_t chunk : {0, 7, 8}) EXPECT_TRUE(book.is_in_slot(chunk)) << chunk;
  for (std::int64_t chunk = 1; chunk < 7; ++chunk) EXPECT_FALSE(book.has(chunk)) << chunk;
}

TEST(PreciseChunks, WithoutAScratchThoseInsideAPromptAreCodesOnly) {
  ChunkBook book(20L * kChunkTokens);
  EXPECT_EQ(book.chunks().keep(rows_between(0, 530), nullptr), Rows{8});
  for (std::int64_t chunk = 0; chunk < 20; ++chunk) {
    EXPECT_EQ(book.has(chunk), chunk == 0 || chunk == 7 || chunk == 8) << chunk;
  }
}

TEST(PreciseChunks, AScratchThatIsTooSmallTakesWhatItHolds) {
  ChunkBook book(20L * kChunkTokens);
  const Scratch8 small = scratch_for(book.shape(), 2L * kChunkTokens);
  EXPECT_EQ(book.chunks().keep(rows_between(0, 530), small), Rows{8});
  EXPECT_EQ(book.at(1), Place(small.get(), 0));
  EXPECT_EQ(book.at(2), Place(small.get(), 1));
  for (std::int64_t chunk = 3; chunk < 7; ++chunk) EXPECT_FALSE(book.has(chunk)) << chunk;
}

// The first queries of a second prompt read the chunks before it, the next token reads its end.
TEST(PreciseChunks, ALaterPromptKeepsBothItsEnds) {
  ChunkBook book(40L * kChunkTokens);
  EXPECT_EQ(book.keep(rows_between(0, 1000)), Rows{15});
  EXPECT_EQ(book.keep(rows_between(1000, 1500)), Rows{23});
  // The end of the prompt has got the slot of 14, which a few rows of 15 would have read.
  for (const std::int64_t chunk : {0, 15, 22, 23}) EXPECT_TRUE(book.is_in_slot(chunk)) << chunk;
  for (std::int64_t chunk = 16; chunk < 22; ++chunk) EXPECT_TRUE(book.passes(chunk)) << chunk;
  EXPECT_EQ(book.keep({1500}), Rows{});
  for (const std::int64_t chunk : {0, 22, 23}) EXPECT_TRUE(book.is_in_slot(chunk)) << chunk;
}

// The last chunk of a stream and the first of the next do not follow each other.
TEST(PreciseChunks, AnotherStreamIsNotWhatFollows) {
  ChunkBook book(8L * kChunkTokens, 2);
  EXPECT_EQ(book.keep(rows_between(0, 16L * kChunkTokens)), Rows{});
  for (const std::int64_t chunk : {0, 6, 7, 8, 14, 15})
    EXPECT_TRUE(book.is_in_slot(chunk)) << chunk;
  EXPECT_EQ(book.n_places(16), 16);
}

TEST(PreciseChunks, WhatACallNeedsIsNotTakenAway) {
  ChunkBook book(64L * kChunkTokens);
  const std::int64_t n_slots = book.n_slots();
  const auto row_of = [](std::int64_t chunk) { return chunk * kChunkTokens + 5; };
  // One row in each of more chunks than there are slots.
  Rows all;
  for (std::int64_t chunk = 1; chunk <= n_slots + 4; ++chunk) all.push_back(row_of(2 * chunk));
  EXPECT_EQ(book.keep(all).size(), static_cast<std::size_t>(n_slots));
  EXPECT_EQ(book.n_places(64), n_slots);
  // All slots but one are needed; that one is taken, and only once.
  const Place kept = book.at(2);
  Rows most;
  for (std::int64_t chunk = 1; chunk < n_slots; ++chunk) most.push_back(row_of(2 * chunk));
  most.append_range(Rows{row_of(50), row_of(60)});
  EXPECT_EQ(book.keep(most), Rows{50});
  EXPECT_FALSE(book.has(2 * n_slots));
  EXPECT_FALSE(book.has(60));
  EXPECT_EQ(book.at(2), kept);
  EXPECT_EQ(book.n_places(64), n_slots);
  // The chunk before a row is needed, too. It loses its slot when it is needed no longer.
  EXPECT_EQ(book.keep({row_of(3)}), Rows{3});
  EXPECT_EQ(book.at(2), kept);
  for (std::int64_t chunk = 20; chunk < 20 + 2 * n_slots; chunk += 2) {
    EXPECT_EQ(book.keep({row_of(chunk)}), Rows{chunk});
  }
  EXPECT_FALSE(book.has(2));
}

TEST(PreciseChunks, ForgetsAStreamOrAll) {
  ChunkBook book(8L * kChunkTokens, 2);
  const auto keep_both = [&] {
    return book.keep({3, 4, kChunkTokens, 8L * kChunkTokens, 9L * kChunkTokens});
  };
  EXPECT_EQ(keep_both(), (Rows{0, 1, 8, 9}));
  book.chunks().forget_stream(1);
  for (std::int64_t chunk = 0; chunk < 16; ++chunk) EXPECT_EQ(book.has(chunk), chunk < 2) << chunk;
  EXPECT_EQ(keep_both(), (Rows{8, 9}));
  book.chunks().forget_all();
  EXPECT_EQ(book.n_places(16), 0);
  EXPECT_EQ(keep_both(), (Rows{0, 1, 8, 9}));
  // Chunks in the scratch are forgotten, too.
  for (const bool all : {false, true}) {
    EXPECT_EQ(book.keep(rows_between(0, 8L * kChunkTokens)), Rows{});
    ASSERT_TRUE(book.passes(3));
    all ? book.chunks().forget_all() : book.chunks().forget_stream(0);
    for (std::int64_t chunk = 0; chunk < 8; ++chunk) EXPECT_FALSE(book.has(chunk)) << chunk;
  }
}

}  // namespace
}  // namespace slipstream::turbo
