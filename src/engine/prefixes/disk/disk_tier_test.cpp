#include "engine/prefixes/disk/disk_tier.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <set>

#include "engine/prefixes/disk/disk_tier_test_support.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

constexpr std::size_t kStateBytes = 10'000;
constexpr std::uint64_t kMany = std::uint64_t{1} << 30;

class DiskTiers : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return directory_.path() + "/prefixes"; }

  void open(std::uint64_t bytes_max = kMany, const DiskLimits& limits = kDiskLimits,
            const Fingerprint& fingerprint = kFingerprint) {
    tier_.reset();
    tier_ = open_another(bytes_max, limits, fingerprint);
  }

  // As another process would.
  [[nodiscard]] std::unique_ptr<DiskTier> open_another(
      std::uint64_t bytes_max = kMany, const DiskLimits& limits = kDiskLimits,
      const Fingerprint& fingerprint = kFingerprint) const {
    Result<std::unique_ptr<DiskTier>> tier = DiskTier::open(path(), bytes_max, fingerprint, limits);
    SLIP_CHECK(tier.has_value(), tier.error().message);
    return std::move(*tier);
  }

  // Writes and waits until it is done.
  bool write(std::uint64_t number, std::size_t n_bytes = kStateBytes, std::uint64_t salt = 0) {
    const bool taken = tier_->write(salt, sample_tokens(number), sample_state(number, n_bytes));
    tier_->flush();
    return taken;
  }

  [[nodiscard]] bool has(std::uint64_t number, std::uint64_t salt = 0) const {
    const std::vector<Token> tokens = sample_tokens(number);
    return tier_->find(salt, tokens).n_common == static_cast<int>(tokens.size());
  }

  // Whether the prefix is stored and its state is correct.
  bool read(std::uint64_t number, std::size_t n_bytes = kStateBytes, std::uint64_t salt = 0) {
    const DiskMatch match = tier_->find(salt, sample_tokens(number));
    if (match.id == 0) return false;
    const Result<std::vector<std::byte>> state = tier_->read(match.id);
    if (!state) return false;
    EXPECT_TRUE(*state == sample_state(number, n_bytes));
    return true;
  }

  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& item : std::filesystem::directory_iterator(path())) {
      names.push_back(item.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }
  [[nodiscard]] std::string only_file() const {
    const std::vector<std::string> names = files();
    SLIP_CHECK(names.size() == 2 && names[1] == "prefix.lock", "not one file");
    return path() + "/" + names[0];
  }

  [[nodiscard]] std::string other_file_than(const std::string& first) const {
    const std::vector<std::string> names = files();
    SLIP_CHECK(names.size() == 3, "not two files");
    return path() + "/" + (path() + "/" + names[0] == first ? names[1] : names[0]);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<DiskTier> tier_;
};

TEST_F(DiskTiers, KeepPrefixesOverARestart) {
  open();
  EXPECT_TRUE(write(1));
  EXPECT_TRUE(write(2, 3'000'000, 77));
  EXPECT_TRUE(read(1));
  open();
  EXPECT_EQ(tier_->stats().n_files, 2U);
  EXPECT_TRUE(read(1));
  EXPECT_TRUE(read(2, 3'000'000, 77));
  EXPECT_FALSE(has(2)) << "it has a salt";
  EXPECT_TRUE(write(3));
  EXPECT_EQ(tier_->stats().n_files, 3U);
}

TEST_F(DiskTiers, FindWhatSharesMostAndReadAllOfIt) {
  open();
  EXPECT_TRUE(tier_->write(0, {1, 2, 3, 4}, sample_state(1, 100)));
  EXPECT_TRUE(tier_->write(0, {1, 2, 5, 6, 7}, sample_state(2, 200)));
  tier_->flush();
  const DiskMatch match = tier_->find(0, std::vector<Token>{1, 2, 5, 9});
  EXPECT_EQ(match.n_common, 3);
  EXPECT_EQ(match.n_stored, 5);
  EXPECT_EQ(match.state_bytes, 200U);
  EXPECT_EQ(tier_->read(match.id), sample_state(2, 200));
}

TEST_F(DiskTiers, ALongerPrefixReplacesItsBeginning) {
  open();
  EXPECT_TRUE(tier_->write(0, {1, 2}, sample_state(1, 100)));
  tier_->flush();
  EXPECT_FALSE(tier_->wants(0, std::vector<Token>{1, 2}, 100));
  EXPECT_FALSE(tier_->write(0, {1}, sample_state(1, 50)));
  EXPECT_TRUE(tier_->wants(0, std::vector<Token>{1, 2, 3}, 150));
  EXPECT_TRUE(tier_->write(0, {1, 2, 3}, sample_state(3, 150)));
  tier_->flush();
  EXPECT_EQ(files().size(), 2U) << "one prefix and the lock";
  EXPECT_EQ(tier_->find(0, std::vector<Token>{1, 2}).n_stored, 3);
  open();
  EXPECT_EQ(tier_->find(0, std::vector<Token>{1, 2}).n_stored, 3);
}

TEST_F(DiskTiers, DropAtTheStartWhatADeadProcessHadNoTimeToDrop) {
  open();
  EXPECT_TRUE(tier_->write(0, {1, 2}, sample_state(1, 100)));
  tier_->flush();
  const std::string shorter = only_file();
  std::filesystem::copy(shorter, directory_.path() + "/kept");
  EXPECT_TRUE(tier_->write(0, {1, 2, 3}, sample_state(3, 150)));
  tier_->flush();
  const std::string longer = std::filesystem::path(only_file()).filename();
  tier_.reset();
  std::filesystem::rename(directory_.path() + "/kept", shorter);
  std::ofstream(path() + "/prefix-00000000000000ff.kv.partial") << "half of a fi";
  std::ofstream(path() + "/notes.txt") << "not ours";
  std::ofstream(path() + "/prefix-FF.kv") << "nor this";
  std::filesystem::create_directory(path() + "/prefix-00000000000000aa.kv");
  open();
  EXPECT_EQ(tier_->stats().n_files, 1U);
  EXPECT_EQ(tier_->stats().n_corrupt, 0U);
  EXPECT_THAT(files(),
              testing::UnorderedElementsAre("notes.txt", longer, "prefix-00000000000000aa.kv",
                                            "prefix-FF.kv", "prefix.lock"));
}

TEST_F(DiskTiers, AreForTheirOwnerOnly) {
  const mode_t mask = ::umask(0);
  open();
  EXPECT_TRUE(write(1));
  ::umask(mask);
  const auto permissions = [](const std::string& name) {
    return std::filesystem::status(name).permissions();
  };
  EXPECT_EQ(permissions(path()), std::filesystem::perms::owner_all);
  for (const std::string& name : files()) {
    EXPECT_EQ(permissions(path() + "/" + name),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
}

TEST_F(DiskTiers, NeedADirectory) {
  std::ofstream(path()) << "a file";
  const auto tier = DiskTier::open(path(), kMany, kFingerprint);
  ASSERT_FALSE(tier);
  EXPECT_THAT(tier.error().message, HasSubstr(path() + ": Not a directory"));
}

// --- budget

// The size of n files of kStateBytes each.
std::uint64_t budget_of(std::uint64_t n_files) { return n_files * (kStateBytes + 400); }

TEST_F(DiskTiers, DeleteWhatWasUsedLongestAgoAlsoAfterARestart) {
  open(budget_of(3));
  for (const std::uint64_t number : {1, 2, 3}) EXPECT_TRUE(write(number));
  EXPECT_TRUE(read(1));
  EXPECT_FALSE(tier_->wants(0, sample_tokens(2), 1)) << "it is there, and was used now";
  open(budget_of(3));
  EXPECT_TRUE(write(4));
  EXPECT_FALSE(has(3));
  EXPECT_TRUE(write(5));
  EXPECT_FALSE(has(1));
  EXPECT_TRUE(has(2) && has(4) && has(5));
  EXPECT_EQ(tier_->stats().n_evicted, 2U);
  EXPECT_LE(tier_->stats().bytes, budget_of(3));
  open(budget_of(1));
  EXPECT_EQ(tier_->stats().n_files, 1U) << "the budget is smaller now";
  EXPECT_TRUE(has(5));
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(DiskTiers, RefuseWhatCanNeverBe) {
  open(budget_of(1), {.prefix_tokens_max = 10, .prefix_state_bytes_max = 5000});
  EXPECT_FALSE(tier_->write(0, {}, sample_state(1, 10)));
  EXPECT_FALSE(tier_->write(0, {1}, {}));
  EXPECT_FALSE(tier_->write(0, std::vector<Token>(11), sample_state(1, 10)));
  EXPECT_FALSE(tier_->write(0, {1}, sample_state(1, 5001)));
  EXPECT_TRUE(tier_->write(0, std::vector<Token>(10), sample_state(1, 5000)));
  open(budget_of(1));
  EXPECT_FALSE(tier_->write(0, {1}, sample_state(1, 2 * kStateBytes))) << "beyond the budget";
}

TEST_F(DiskTiers, KeepNoMoreFilesThanTheLimit) {
  open(kMany, {.n_prefix_files_max = 3});
  for (std::uint64_t number = 1; number <= 5; ++number) EXPECT_TRUE(write(number));
  EXPECT_EQ(tier_->stats().n_files, 3U);
  EXPECT_TRUE(has(3) && has(4) && has(5));
  open(kMany, {.n_prefix_files_max = 2});
  EXPECT_EQ(tier_->stats().n_files, 2U);
}

// --- several processes

// What one process writes another knows a second later; the test waits longer on a busy machine.
bool comes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

bool knows(const DiskTier& tier, const std::vector<Token>& tokens, int n_stored) {
  return tier.find(0, tokens).n_stored == n_stored;
}

TEST_F(DiskTiers, FindWhatAnotherProcessHasWritten) {
  open();
  const auto other = open_another();
  EXPECT_TRUE(other->write(0, {1, 2, 3}, sample_state(1, 3'000'000)));
  ASSERT_TRUE(comes_true([&] { return knows(*tier_, {1, 2, 3}, 3); }));
  EXPECT_EQ(tier_->read(tier_->find(0, std::vector<Token>{1, 2, 3}).id),
            sample_state(1, 3'000'000));
  EXPECT_FALSE(tier_->wants(0, std::vector<Token>{1, 2}, 100));
  EXPECT_TRUE(tier_->write(0, {1, 2, 3, 4}, sample_state(2, 100)));
  ASSERT_TRUE(comes_true([&] { return knows(*other, {1, 2, 3}, 4); }));
  EXPECT_EQ(other->stats().n_files, 1U) << "the shorter one is gone";
  EXPECT_EQ(other->stats().n_corrupt, 0U);
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(DiskTiers, OneOfTwoThatWriteTheSamePrefixIsEnough) {
  open();
  const auto other = open_another();
  for (std::uint64_t number = 1; number <= 20; ++number) {
    EXPECT_TRUE(tier_->write(0, sample_tokens(number), sample_state(number, kStateBytes)));
    static_cast<void>(other->write(0, sample_tokens(number), sample_state(number, kStateBytes)));
    tier_->flush();
    other->flush();
    EXPECT_EQ(files().size(), number + 1);
    EXPECT_TRUE(has(number));
  }
  EXPECT_EQ(tier_->stats().n_writes + other->stats().n_writes, 20U);
}

TEST_F(DiskTiers, ABudgetHoldsForAllAndCountsTheUsesOfAll) {
  open(budget_of(3));
  const auto other = open_another(budget_of(3));
  for (const std::uint64_t number : {1, 2, 3}) EXPECT_TRUE(write(number));
  ASSERT_TRUE(comes_true([&] { return other->stats().n_files == 3; }));
  EXPECT_TRUE(other->read(other->find(0, sample_tokens(1)).id));
  EXPECT_TRUE(write(4));
  EXPECT_TRUE(has(1) && has(3) && has(4)) << "2 is the one that nobody has used since";
  EXPECT_TRUE(other->write(0, sample_tokens(5), sample_state(5, kStateBytes)));
  other->flush();
  EXPECT_EQ(files().size(), 4U);
  EXPECT_TRUE(comes_true([&] { return has(5) && !has(3); }));
}

TEST_F(DiskTiers, DoNotWaitLongForAProcessThatHangs) {
  open(kMany, {.turn_wait_max = std::chrono::milliseconds(50)});
  EXPECT_TRUE(write(1));
  const Result<UniqueFd> lock = open_file(path() + "/prefix.lock", O_RDWR);
  ASSERT_TRUE(lock);
  ASSERT_EQ(::flock(lock->get(), LOCK_EX | LOCK_NB), 0);
  CaptureStderr();
  EXPECT_TRUE(write(2));
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("another process has"));
  EXPECT_EQ(tier_->stats().n_write_failures, 1U);
  EXPECT_TRUE(read(1)) << "reading needs no turn";
  CaptureStderr();
  open(kMany, {.turn_wait_max = std::chrono::milliseconds(50)});
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("event=disk_tier.no_turn"));
  EXPECT_TRUE(read(1));
  ASSERT_EQ(::flock(lock->get(), LOCK_UN), 0);
  EXPECT_TRUE(write(2));
}

TEST_F(DiskTiers, ManyProcessesAtTheSameTime) {
  constexpr std::uint64_t kNumbers = 12;
  const DiskLimits limits = {.turn_wait_max = std::chrono::minutes(1)};
  std::atomic<int> n_read = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      threads.emplace_back([&, seed] {
        const auto tier = open_another(budget_of(6), limits);
        std::mt19937_64 random(seed);
        for (int i = 0; i < 60; ++i) {
          const std::uint64_t number = 1 + random() % kNumbers;
          const DiskMatch match = tier->find(0, sample_tokens(number));
          if (match.id == 0) {
            tier->write(0, sample_tokens(number), sample_state(number, kStateBytes));
            tier->flush();
          } else if (const auto state = tier->read(match.id)) {
            EXPECT_TRUE(*state == sample_state(number, kStateBytes));
            ++n_read;
          }
        }
        EXPECT_EQ(tier->stats().n_corrupt, 0U);
        EXPECT_EQ(tier->stats().n_write_failures, 0U);
      });
    }
  }
  EXPECT_GT(n_read, 0);
  open(budget_of(6));
  EXPECT_EQ(tier_->stats().n_corrupt, 0U);
  EXPECT_GE(tier_->stats().n_files, 5U);
  EXPECT_LE(tier_->stats().bytes, budget_of(6));
}

// --- the queue

// These two tests need the writer to be busy meanwhile. If it was too fast, they try again.
constexpr std::size_t kLarge = 20'000'000;

TEST_F(DiskTiers, TakeNoMoreThanTheQueueHolds) {
  const std::vector<std::byte> large = sample_state(1, kLarge);
  bool was_busy = false;
  for (int i = 0; i < 50 && !was_busy; ++i) {
    std::filesystem::remove_all(path());
    open(kMany, {.n_prefix_writes_max = 2, .prefix_writes_bytes_max = 30'000'000});
    EXPECT_TRUE(tier_->write(0, sample_tokens(1), large));
    const bool twice = tier_->wants(0, sample_tokens(1), 1);
    const bool its_beginning = tier_->wants(0, std::vector<Token>{sample_tokens(1)[0]}, 1);
    const bool too_many_bytes = tier_->wants(0, sample_tokens(2), kLarge);
    const bool one_more = tier_->write(0, sample_tokens(2), sample_state(2, 1));
    const bool too_many = tier_->write(0, sample_tokens(3), sample_state(3, 1));
    was_busy = tier_->stats().n_writes == 0;
    if (was_busy) {
      EXPECT_FALSE(twice);
      EXPECT_FALSE(its_beginning);
      EXPECT_FALSE(too_many_bytes);
      EXPECT_TRUE(one_more);
      EXPECT_FALSE(too_many);
    }
    tier_->flush();
    EXPECT_TRUE(tier_->wants(0, sample_tokens(4), kLarge));
    EXPECT_TRUE(read(1, kLarge) && read(2, 1));
  }
  EXPECT_TRUE(was_busy);
}

TEST_F(DiskTiers, FinishTheWriteInProgressAndDropTheRest) {
  const std::vector<std::byte> large = sample_state(1, kLarge);
  bool was_busy = false;
  for (int i = 0; i < 50 && !was_busy; ++i) {
    std::filesystem::remove_all(path());
    open();
    for (std::uint64_t number = 1; number <= 4; ++number) {
      EXPECT_TRUE(tier_->write(0, sample_tokens(number), large));
    }
    while (files().size() < 2) std::this_thread::yield();  // the first one has begun
    open();
    for (const std::string& name : files()) EXPECT_THAT(name, testing::Not(HasSubstr("partial")));
    EXPECT_TRUE(read(1, kLarge));
    was_busy = tier_->stats().n_files < 4;
  }
  EXPECT_TRUE(was_busy);
}

// --- damage

TEST_F(DiskTiers, DeleteADamagedFileWhenItIsMet) {
  open();
  EXPECT_TRUE(write(1));
  std::vector<char> bytes = file_bytes(only_file());
  bytes[bytes.size() / 2] ^= 1;  // within the state, which is not checked before it is read
  write_file_bytes(only_file(), bytes);
  open();
  EXPECT_EQ(tier_->stats().n_corrupt, 0U);
  const DiskMatch match = tier_->find(0, sample_tokens(1));
  CaptureStderr();
  const Result<std::vector<std::byte>> state = tier_->read(match.id);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("event=disk_tier.unreadable"));
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, Code::kCorrupt);
  EXPECT_EQ(tier_->stats().n_corrupt, 1U);
  EXPECT_EQ(tier_->stats().n_hits, 0U);
  EXPECT_EQ(files(), std::vector<std::string>{"prefix.lock"});
  EXPECT_EQ(tier_->read(match.id).error().code, Code::kNotFound);
  EXPECT_TRUE(write(1)) << "it can be stored again";
  EXPECT_TRUE(read(1));
}

TEST_F(DiskTiers, DeleteAtTheStartWhatHasADamagedHead) {
  open();
  EXPECT_TRUE(write(1));
  std::vector<char> bytes = file_bytes(only_file());
  bytes[bytes.size() - 30] ^= 1;
  write_file_bytes(only_file(), bytes);
  open();
  EXPECT_EQ(tier_->stats().n_corrupt, 1U);
  EXPECT_EQ(files(), std::vector<std::string>{"prefix.lock"});
}

TEST_F(DiskTiers, NeverTrustAFileThatChangedItsPrefix) {
  open();
  EXPECT_TRUE(write(1));
  const std::string first = only_file();
  EXPECT_TRUE(write(2));
  write_file_bytes(first, file_bytes(other_file_than(first)));
  EXPECT_EQ(tier_->read(tier_->find(0, sample_tokens(1)).id).error().code, Code::kCorrupt);
  EXPECT_TRUE(read(2));
}

TEST_F(DiskTiers, FilesOfAnotherModelAreNotFoundButDeletedInTheirTurn) {
  open();
  EXPECT_TRUE(write(1));
  const std::string first = only_file();
  EXPECT_TRUE(write(2));
  const auto used_at = std::filesystem::last_write_time(first);
  std::vector<char> bytes = file_bytes(first);
  bytes[8] = 9;  // another version of the format
  write_file_bytes(first, bytes);
  std::filesystem::last_write_time(first, used_at);
  Fingerprint other = kFingerprint;
  other[31] = std::byte{1};
  open(budget_of(3), kDiskLimits, other);
  EXPECT_EQ(tier_->stats().n_files, 2U);
  EXPECT_EQ(tier_->stats().n_corrupt, 0U);
  EXPECT_FALSE(has(1) || has(2));
  EXPECT_TRUE(write(1));
  EXPECT_TRUE(write(3));
  EXPECT_EQ(tier_->stats().n_evicted, 1U);
  EXPECT_FALSE(std::filesystem::exists(first)) << "it was the oldest";
  open(budget_of(3));
  EXPECT_TRUE(read(2)) << "the other model is back";
  EXPECT_FALSE(has(3));
  EXPECT_EQ(tier_->stats().n_files, 3U);
}

TEST_F(DiskTiers, GoOnWhenTheDirectoryIsGone) {
  open();
  EXPECT_TRUE(write(1));
  std::filesystem::remove_all(path());
  CaptureStderr();
  EXPECT_FALSE(read(1));
  EXPECT_TRUE(write(2));
  EXPECT_TRUE(write(3));
  const std::string log = GetCapturedStderr();
  EXPECT_EQ(log.find("write_failed"), log.rfind("write_failed")) << "one line, not one per write";
  EXPECT_THAT(log, HasSubstr("No such file"));
  EXPECT_FALSE(has(1) || has(2));
  EXPECT_EQ(tier_->stats().n_write_failures, 2U);
  EXPECT_EQ(tier_->stats().n_files, 0U);
}

TEST_F(DiskTiers, LeaveNothingOfAWriteThatFailsInTheMiddle) {
  open();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 1'500'000, .rlim_max = before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  CaptureStderr();
  EXPECT_TRUE(write(1, 3'000'000));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("File too large"));
  EXPECT_EQ(tier_->stats().n_write_failures, 1U);
  EXPECT_EQ(files(), std::vector<std::string>{"prefix.lock"});
  CaptureStderr();
  EXPECT_TRUE(write(1, 3'000'000));
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("write_works_again"));
  EXPECT_TRUE(read(1, 3'000'000));
}

// --- threads

TEST_F(DiskTiers, ReadersAndWritersAtTheSameTime) {
  constexpr std::uint64_t kNumbers = 12;
  open(budget_of(6), {.n_prefix_writes_max = 3});  // half of them fit
  std::atomic<int> n_read = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      threads.emplace_back([&, seed] {
        std::mt19937_64 random(seed);
        for (int i = 0; i < 150; ++i) {
          const std::uint64_t number = 1 + random() % kNumbers;
          if (random() % 2 == 0) {
            tier_->write(0, sample_tokens(number), sample_state(number, kStateBytes));
          } else if (read(number)) {
            ++n_read;
          }
          if (i % 50 == 0) tier_->flush();
        }
      });
    }
  }
  tier_->flush();
  const DiskTierStats stats = tier_->stats();
  EXPECT_GT(n_read, 0);
  EXPECT_EQ(stats.n_hits, static_cast<std::uint64_t>(n_read));
  EXPECT_EQ(stats.n_corrupt, 0U);
  EXPECT_EQ(stats.n_write_failures, 0U);
  EXPECT_LE(stats.bytes, budget_of(6));
  EXPECT_EQ(files().size(), stats.n_files + 1);
}

}  // namespace
}  // namespace slipstream
