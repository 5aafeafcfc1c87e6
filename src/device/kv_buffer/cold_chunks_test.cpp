#include "device/kv_buffer/cold_chunks.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <random>
#include <thread>
#include <vector>

#include "base/mapping.h"

namespace slipstream::turbo {
namespace {

constexpr std::size_t kSlabBytes = 2 * kBlockBytes;
constexpr std::int64_t kPlanes = 3;
constexpr std::int64_t kOfPlane = 20;
constexpr std::size_t kPlaneStride = kOfPlane * kSlabBytes + kBlockBytes;

class ColdChunksTest : public testing::TestWithParam<ReadMethod> {
 protected:
  explicit ColdChunksTest(std::size_t n_hot = 6)
      : store(std::make_shared<ColdStore>(ColdOptions{.memory_bytes = n_hot * kSlabBytes,
                                                      .directory = testing::TempDir(),
                                                      .way = GetParam(),
                                                      .is_guarded = true})),
        file(ColdFile::create(store).value()),
        memory(Mapping::anonymous(kPlanes * kPlaneStride).value()),
        cold(ColdChunks::create({.first = memory.bytes().data(),
                                 .plane_stride = kPlaneStride,
                                 .slab_bytes = kSlabBytes,
                                 .slabs_of_plane = kOfPlane,
                                 .n_planes = kPlanes},
                                file)
                 .value()) {}

  [[nodiscard]] std::span<std::byte> bytes(Slab slab) {
    return memory.bytes().subspan(slab / kOfPlane * kPlaneStride + slab % kOfPlane * kSlabBytes,
                                  kSlabBytes);
  }
  static std::byte content(Slab slab, int version = 0) {
    return static_cast<std::byte>(1 + slab + 100 * version);
  }
  void write(Slab slab, int version = 0) {
    const auto held = cold->hold({slab}, Access::kWrite);
    ASSERT_TRUE(held) << held.error().message;
    std::ranges::fill(bytes(slab), content(slab, version));
  }
  void write_all(int version = 0) {
    for (Slab slab = 0; slab < kPlanes * kOfPlane; ++slab) write(slab, version);
  }
  [[nodiscard]] bool has(Slab slab, std::byte wanted) {
    const std::span<std::byte> found = bytes(slab);
    return std::ranges::all_of(found, [&](std::byte b) { return b == wanted; });
  }
  void expect(Slab slab, std::byte wanted) {
    const auto held = cold->hold({slab}, Access::kRead);
    ASSERT_TRUE(held) << held.error().message;
    EXPECT_TRUE(has(slab, wanted)) << slab;
  }

  std::shared_ptr<ColdStore> store;
  std::shared_ptr<ColdFile> file;
  Mapping memory;
  std::unique_ptr<ColdChunks> cold;
};

TEST_P(ColdChunksTest, IsEmptyAtFirst) {
  for (Slab slab = 0; slab < kPlanes * kOfPlane; ++slab) expect(slab, std::byte{0});
  EXPECT_EQ(store->counters().n_bytes_read, 0U);
  EXPECT_EQ(store->counters().n_bytes_written, 0U);
}

TEST_P(ColdChunksTest, ReadsBackWhatWasDropped) {
  write_all();
  EXPECT_LE(store->counters().n_bytes_resident, 6 * kSlabBytes);
  for (Slab slab = 0; slab < kPlanes * kOfPlane; ++slab) expect(slab, content(slab));
  for (const Slab slab : {3U, 7U, 20U}) write(slab, 1);
  for (Slab slab = 0; slab < kPlanes * kOfPlane; ++slab) {
    expect(slab, content(slab, slab == 3 || slab == 7 || slab == 20 ? 1 : 0));
  }
  EXPECT_LE(store->counters().n_bytes_resident, 6 * kSlabBytes);
  EXPECT_GT(store->counters().n_bytes_read, 0U);
}

TEST_P(ColdChunksTest, CountsWhatIsFoundAndWhatIsNot) {
  const KvMemoryCounters all_before = ColdCounters::of_process().read();
  write_all();
  EXPECT_EQ(store->counters().n_hits, 0U);
  EXPECT_EQ(store->counters().n_misses, 0U);  // what was empty is not read
  const std::uint64_t n_slabs = store->counters().n_bytes_resident / kSlabBytes;
  EXPECT_GT(n_slabs, 0U);
  const Slab last = kPlanes * kOfPlane - 1;
  ASSERT_TRUE(cold->hold({0, 1, last}, Access::kRead));
  EXPECT_EQ(store->counters().n_hits, 1U);
  EXPECT_EQ(store->counters().n_misses, 2U);
  EXPECT_EQ(store->counters().n_bytes_read, 2 * kSlabBytes);
  EXPECT_EQ(store->counters().n_failed_reads, 0U);
  const KvMemoryCounters all = ColdCounters::of_process().read();
  EXPECT_EQ(all.n_misses - all_before.n_misses, 2U);
  EXPECT_EQ(all.n_bytes_resident - all_before.n_bytes_resident, store->counters().n_bytes_resident);
  cold.reset();
  EXPECT_EQ(store->counters().n_bytes_resident, 0U);
  EXPECT_EQ(ColdCounters::of_process().read().n_bytes_resident, all_before.n_bytes_resident);
  EXPECT_TRUE(ColdStore::was_used());
}

TEST_P(ColdChunksTest, WritesOnlyWhatHasChanged) {
  write_all();
  for (Slab slab = 0; slab < kPlanes * kOfPlane; ++slab) expect(slab, content(slab));
  const std::uint64_t n_written = store->counters().n_bytes_written;
  EXPECT_EQ(n_written, kPlanes * kOfPlane * kSlabBytes);
  for (Slab slab = 0; slab < kPlanes * kOfPlane; ++slab) expect(slab, content(slab));
  EXPECT_EQ(store->counters().n_bytes_written, n_written);
}

TEST_P(ColdChunksTest, HoldsMoreThanItsShareAndLetsItGo) {
  write_all();
  std::vector<Slab> many(30);
  for (Slab slab = 0; slab < many.size(); ++slab) many[slab] = 2 * slab;
  {
    const auto held = cold->hold(many, Access::kRead);
    ASSERT_TRUE(held);
    EXPECT_GE(store->counters().n_bytes_resident, 30 * kSlabBytes);
    for (const Slab slab : many) EXPECT_TRUE(has(slab, content(slab)));
    for (const Slab slab : {1U, 3U, 5U}) expect(slab, content(slab));  // no deadlock
  }
  expect(7, content(7));
  EXPECT_LE(store->counters().n_bytes_resident, 6 * kSlabBytes);
}

TEST_P(ColdChunksTest, KeepsWhatIsUsed) {
  write_all();
  for (Slab slab = 10; slab < 50; ++slab) {
    expect(3, content(3));
    expect(slab, content(slab));
  }
  // Slab 3 was read once, and each of the others but those that were hot.
  EXPECT_LE(store->counters().n_bytes_read, 43 * kSlabBytes);
}

TEST_P(ColdChunksTest, ForgetsAll) {
  write_all();
  cold->forget_all();
  memory.zero();
  EXPECT_EQ(store->counters().n_bytes_resident, 0U);
  for (Slab slab = 0; slab < kPlanes * kOfPlane; ++slab) expect(slab, std::byte{0});
}

TEST_P(ColdChunksTest, ReplacesWithoutReading) {
  write_all();
  const std::uint64_t n_read = store->counters().n_bytes_read;
  for (Slab slab = 0; slab < 20; ++slab) {
    const auto held = cold->hold({slab}, Access::kReplace);
    ASSERT_TRUE(held);
    std::ranges::fill(bytes(slab), content(slab, 2));
  }
  EXPECT_EQ(store->counters().n_bytes_read, n_read);
  for (Slab slab = 0; slab < 20; ++slab) expect(slab, content(slab, 2));
}

TEST_P(ColdChunksTest, AFailedReadLeavesSlabsCold) {
  write_all();
  store->set_faults({.read = [](const FilePiece&) { return EIO; }, .write = {}});
  const auto held = cold->hold({0, 1, 2, 3, 30}, Access::kRead);
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, Code::kIo);
  EXPECT_NE(held.error().message.find("Input/output error"), std::string::npos)
      << held.error().message;
  EXPECT_EQ(store->counters().n_failed_reads, 1U);
  store->set_faults({});
  for (const Slab slab : {0U, 1U, 2U, 3U, 30U}) expect(slab, content(slab));
  EXPECT_LE(store->counters().n_bytes_resident, 6 * kSlabBytes);
}

TEST_P(ColdChunksTest, AFailedWriteLosesNothing) {
  for (Slab slab = 0; slab < 6; ++slab) write(slab);
  store->set_faults({.read = {}, .write = [] { return ENOSPC; }});
  const auto held = cold->hold({40}, Access::kWrite);
  ASSERT_FALSE(held);
  EXPECT_NE(held.error().message.find("No space left"), std::string::npos) << held.error().message;
  EXPECT_EQ(store->counters().n_failed_writes, 1U);
  for (Slab slab = 0; slab < 6; ++slab) expect(slab, content(slab));
  store->set_faults({});
  write(40);
  for (Slab slab = 0; slab < 6; ++slab) expect(slab, content(slab));
  expect(40, content(40));
}

TEST_P(ColdChunksTest, LostRowsAreNotGivenOut) {
  write_all();
  cold->lose("the disk is gone");
  EXPECT_FALSE(cold->hold({1}, Access::kRead));
  cold->forget_all();
  memory.zero();
  expect(1, std::byte{0});
}

TEST_P(ColdChunksTest, StartsReadsOfSeveral) {
  write_all();
  auto first = cold->start({0, 1}, Access::kRead);
  auto second = cold->start({1, 2}, Access::kRead);
  ASSERT_TRUE(first && second);
  {
    const auto not_finished = cold->start({4, 5}, Access::kRead);
    ASSERT_TRUE(not_finished);
  }
  ASSERT_TRUE(first->finish());
  ASSERT_TRUE(second->finish());
  for (const Slab slab : {0U, 1U, 2U}) EXPECT_TRUE(has(slab, content(slab)));
}

// Threads read and change slabs of their own and read those of others, now and then with a fault.
// Each waits for what the other one has started to read ahead.
TEST_P(ColdChunksTest, NoneWaitForEachOtherInACircle) {
  write_all();
  constexpr Slab kA = 0;
  constexpr Slab kB = 20;
  using Held = ColdChunks::Held;
  const auto start = [&](Slab slab) { return cold->start({slab}, Access::kRead).value(); };
  std::array ahead_a = {start(kA)};
  std::array ahead_b = {start(kB)};
  std::array now_a = {start(kB)};
  std::array now_b = {start(kA)};
  std::thread other([&] {
    EXPECT_TRUE(Held::finish(now_b, ahead_b));
    EXPECT_TRUE(Held::finish(ahead_b, {}));
  });
  EXPECT_TRUE(Held::finish(now_a, ahead_a));
  EXPECT_TRUE(Held::finish(ahead_a, {}));
  other.join();
  EXPECT_TRUE(has(kA, content(kA)));
  EXPECT_TRUE(has(kB, content(kB)));
}

TEST_P(ColdChunksTest, ServesThreads) {
  constexpr Slab kThreads = 3;
  constexpr int kRounds = 300;
  write_all();
  std::atomic<unsigned> n_reads = 0;
  store->set_faults(
      {.read = [&](const FilePiece&) { return ++n_reads % 50 == 0 ? EIO : 0; }, .write = {}});
  std::atomic<int> n_failed = 0;
  const auto work = [&](Slab thread) {
    std::mt19937 random(thread);
    const auto below = [&](Slab n) {
      return std::uniform_int_distribution<Slab>(0, n - 1)(random);
    };
    std::vector<int> versions(kPlanes * kOfPlane);
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Slab> slabs;
      for (Slab slab = below(5); slab < kPlanes * kOfPlane; slab += 1 + below(20)) {
        slabs.push_back(slab);
      }
      const bool writes = round % 3 == 0;
      if (writes) std::erase_if(slabs, [&](Slab slab) { return slab % kThreads != thread; });
      const auto held = cold->hold(slabs, writes ? Access::kWrite : Access::kRead);
      if (!held) {
        ++n_failed;
        continue;
      }
      for (const Slab slab : slabs) {
        if (slab % kThreads != thread) continue;  // others may be writing it
        EXPECT_TRUE(has(slab, content(slab, versions[slab])));
        if (!writes) continue;
        versions[slab] = round % 2;
        std::ranges::fill(bytes(slab), content(slab, versions[slab]));
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (Slab i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  }
  EXPECT_GT(n_failed, 0);
  EXPECT_LT(n_failed, kRounds);
}

class RoomyColdChunksTest : public ColdChunksTest {
 protected:
  RoomyColdChunksTest() : ColdChunksTest(40) {}
};

// As a prompt does: each slab is used when it is written, and then not again.
TEST_P(RoomyColdChunksTest, WritesNeighboursTogether) {
  int n_writes = 0;
  store->set_faults({.read = {}, .write = [&] {
                       ++n_writes;
                       return 0;
                     }});
  write_all();
  EXPECT_LE(store->counters().n_bytes_resident, 40 * kSlabBytes);
  const std::uint64_t n_written = store->counters().n_bytes_written / kSlabBytes;
  EXPECT_GE(n_written, 20U);
  EXPECT_LE(static_cast<std::uint64_t>(n_writes), n_written / 2);
  for (Slab slab = 0; slab < kPlanes * kOfPlane; ++slab) expect(slab, content(slab));
}

INSTANTIATE_TEST_SUITE_P(Ways, ColdChunksTest,
                         testing::Values(ReadMethod::kUringDirect, ReadMethod::kUringBuffered,
                                         ReadMethod::kPread));
INSTANTIATE_TEST_SUITE_P(Ways, RoomyColdChunksTest,
                         testing::Values(ReadMethod::kUringDirect, ReadMethod::kUringBuffered,
                                         ReadMethod::kPread));

TEST(ColdFile, HasNoNameAndBelongsToItsOwner) {
  const auto store =
      std::make_shared<ColdStore>(ColdOptions{.memory_bytes = 1, .directory = testing::TempDir()});
  const auto file = ColdFile::create(store).value();
  ASSERT_TRUE(file->reserve(1 << 20U));
  EXPECT_EQ(file->take(kBlockBytes).value(), 0U);
  EXPECT_EQ(file->take(1 << 20U).value(), kBlockBytes);  // grows
  struct stat status{};
  ASSERT_EQ(::fstat(file->file().fd.get(), &status), 0);
  EXPECT_EQ(status.st_nlink, 0U);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(static_cast<std::size_t>(status.st_size), (1U << 20U) + kBlockBytes);
  EXPECT_GE(static_cast<std::size_t>(status.st_blocks) * 512, 1U << 20U);
}

TEST(ColdFile, SaysWhereThereIsNoRoom) {
  const auto in = [](const char* directory) {
    return ColdFile::create(
        std::make_shared<ColdStore>(ColdOptions{.memory_bytes = 1, .directory = directory}));
  };
  const auto missing = in("/nowhere/at/all");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/nowhere/at/all"), std::string::npos);
  const auto file = in(testing::TempDir().c_str());
  ASSERT_TRUE(file);
  const auto reserved = (*file)->reserve(std::uint64_t{1} << 53U);
  ASSERT_FALSE(reserved);
  EXPECT_NE(reserved.error().message.find("name another directory"), std::string::npos)
      << reserved.error().message;
}

TEST(ColdOptions, AreReadFromText) {
  const ColdOptions plain = parse_cold_options("6G").value();
  EXPECT_EQ(plain.memory_bytes, std::uint64_t{6} << 30U);
  EXPECT_EQ(plain.directory, "/var/tmp");
  const ColdOptions all = parse_cold_options("512MiB,dir=/a/b,io=pread").value();
  EXPECT_EQ(all.memory_bytes, std::uint64_t{512} << 20U);
  EXPECT_EQ(all.directory, "/a/b");
  EXPECT_EQ(all.way, ReadMethod::kPread);
  for (const char* wrong :
       {"", "0", "G", "6GB", "6iB", "6G,", "6G,dir=", "6G,io=fast", "6G,what", "99999999999999T"}) {
    EXPECT_FALSE(parse_cold_options(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace slipstream::turbo
