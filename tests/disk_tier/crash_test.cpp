// kill -9 at any time leaves whole files, and at most one partial one that the next start removes.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "base/log.h"
#include "engine/prefixes/disk/disk_tier.h"
#include "engine/prefixes/disk/disk_tier_test_support.h"
#include "sizes.h"

namespace slipstream {
namespace {

std::size_t n_files_named(const std::string& directory, const std::string& end) {
  std::size_t n = 0;
  for (const auto& item : std::filesystem::directory_iterator(directory)) {
    n += item.path().string().ends_with(end) ? 1 : 0;
  }
  return n;
}

class Writer {
 public:
  Writer(std::string directory, int seed) {
    std::string program = DISK_TIER_WRITER;
    std::string seed_argument = std::to_string(seed);
    char* const arguments[] = {program.data(), directory.data(), seed_argument.data(), nullptr};
    const int status =
        ::posix_spawn(&child_, program.c_str(), nullptr, nullptr, arguments, environ);
    SLIP_CHECK(status == 0, "cannot start the writer");
  }
  ~Writer() {
    EXPECT_EQ(::kill(child_, SIGKILL), 0);
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

 private:
  pid_t child_ = 0;
};

// How long a writer takes until it has written something: longer with a sanitizer.
std::chrono::microseconds startup_time(const std::string& directory) {
  const auto start = std::chrono::steady_clock::now();
  const Writer writer(directory, 0);
  while (n_files_named(directory, ".kv") == 0) std::this_thread::yield();
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                               start);
}

// Every file is there in the index, and each gives the state it should.
std::uint64_t check_all(const std::string& directory) {
  const auto tier = DiskTier::open(directory, kCrashBytesMax, kFingerprint);
  SLIP_CHECK(tier.has_value(), tier.error().message);
  EXPECT_EQ(n_files_named(directory, ".partial"), 0U);
  std::uint64_t n_found = 0;
  for (std::uint64_t number = 0; number < kCrashNumbers; ++number) {
    const DiskMatch match = (*tier)->find(0, sample_tokens(number));
    if (match.id == 0) continue;
    ++n_found;
    const Result<std::vector<std::byte>> state = (*tier)->read(match.id);
    EXPECT_TRUE(state) << state.error().message;
    EXPECT_TRUE(state == sample_state(number, crash_state_bytes(number)));
  }
  const DiskTierStats stats = (*tier)->stats();
  EXPECT_EQ(stats.n_corrupt, 0U);
  EXPECT_EQ(stats.n_files, n_found);
  EXPECT_EQ(n_files_named(directory, ".kv"), n_found);
  EXPECT_LE(stats.bytes, kCrashBytesMax);
  return n_found;
}

TEST(DiskTierCrash, KilledFiftyTimesWhileWriting) {
  log::set_level(log::Level::kWarn);
  const TemporaryDirectory directory;
  const std::chrono::microseconds startup = startup_time(directory.path());
  std::mt19937 random(1);
  std::size_t n_partial = 0;
  std::uint64_t n_found = 0;
  for (int i = 1; i <= 50 && !testing::Test::HasFailure(); ++i) {
    {
      const Writer writer(directory.path(), i);
      // From before its first system call to well within the writing.
      const double part = std::uniform_real_distribution<>(0, 1)(random);
      std::this_thread::sleep_for(part * (1.5 * startup + std::chrono::milliseconds(50)));
    }
    n_partial += n_files_named(directory.path(), ".partial");
    n_found = check_all(directory.path());
  }
  std::printf("%zu of 50 were killed within a file\n", n_partial);
  EXPECT_GT(n_found, 5U);
  EXPECT_GT(n_partial, 5U) << "hardly any was killed while it wrote: this shows nothing";
}

TEST(DiskTierCrash, ASecondProcessWritesBesideTheFirstAndOutlivesIt) {
  const TemporaryDirectory directory;
  const auto tier = DiskTier::open(directory.path(), kCrashBytesMax, kFingerprint);
  ASSERT_TRUE(tier) << tier.error().message;
  const auto write = [&](std::uint64_t number) {
    return (*tier)->write(0, sample_tokens(number),
                          sample_state(number, crash_state_bytes(number)));
  };
  {
    const Writer writer(directory.path(), 0);
    while (n_files_named(directory.path(), ".kv") == 0) std::this_thread::yield();
    for (std::uint64_t i = 0; (*tier)->stats().n_writes == 0; ++i) {
      if (write(i % kCrashNumbers)) (*tier)->flush();
    }
  }
  // The first one is dead, perhaps in its turn to write.
  std::uint64_t number = 0;
  while ((*tier)->find(0, sample_tokens(number)).id != 0) ++number;
  ASSERT_TRUE(write(number));
  (*tier)->flush();
  EXPECT_NE((*tier)->find(0, sample_tokens(number)).id, 0U);
  EXPECT_EQ((*tier)->stats().n_corrupt, 0U);
  EXPECT_GT(check_all(directory.path()), 0U);
}

}  // namespace
}  // namespace slipstream
