// A disk that is full, in blocks or in files: prefixes are dropped, the reserve stays free, and
// when there is room again the tier goes on. On file systems in memory, mounted for this process
// only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "engine/prefixes/disk/disk_tier.h"
#include "engine/prefixes/disk/disk_tier_test_support.h"

namespace slipstream {
namespace {

using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class FullDisk : public testing::Test {
 protected:
  ~FullDisk() override {
    tier_.reset();
    if (is_mounted_) ::umount2(directory_.path().c_str(), MNT_DETACH);
  }

  // False, and why not, where mounting is not permitted.
  bool mount(const std::string& options) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", directory_.path().c_str(), "tmpfs", 0, options.c_str()) != 0) {
      std::printf("cannot mount a file system of limited size: %s\n", std::strerror(errno));
      return false;
    }
    is_mounted_ = true;
    Result<std::unique_ptr<DiskTier>> tier =
        DiskTier::open(directory_.path() + "/prefixes", 100 * kMiB, kFingerprint);
    SLIP_CHECK(tier.has_value(), tier.error().message);
    tier_ = std::move(*tier);
    return true;
  }

  void write(std::uint64_t number, std::size_t n_bytes) {
    EXPECT_TRUE(tier_->write(0, sample_tokens(number), sample_state(number, n_bytes)));
    tier_->flush();
  }
  [[nodiscard]] bool has(std::uint64_t number) const {
    return tier_->find(0, sample_tokens(number)).id != 0;
  }
  [[nodiscard]] std::uint64_t free_bytes() const {
    struct statvfs status{};
    SLIP_CHECK(::statvfs(directory_.path().c_str(), &status) == 0, "cannot ask for free space");
    return std::uint64_t{status.f_bavail} * status.f_frsize;
  }

  TemporaryDirectory directory_;
  bool is_mounted_ = false;
  std::unique_ptr<DiskTier> tier_;
};

TEST_F(FullDisk, OldPrefixesMakeRoomAndTheReserveStaysFree) {
  if (!mount("size=20m")) GTEST_SKIP();
  for (std::uint64_t number = 1; number <= 12; ++number) {
    write(number, 3 * kMiB);
    EXPECT_GE(free_bytes(), kMiB) << "5 % of 20 MiB";
    EXPECT_TRUE(has(number));
  }
  EXPECT_EQ(tier_->stats().n_files, 6U);
  EXPECT_EQ(tier_->stats().n_write_failures, 0U);
}

TEST_F(FullDisk, WhatOthersFillIsNotTakenAndTheTierGoesOn) {
  if (!mount("size=20m")) GTEST_SKIP();
  write(1, kMiB);
  write_file_bytes(directory_.path() + "/other", std::vector<char>(18 * kMiB));
  CaptureStderr();
  for (std::uint64_t number = 2; number <= 5; ++number) write(number, 5 * kMiB);
  const std::string log = GetCapturedStderr();
  EXPECT_THAT(log, testing::HasSubstr("do not fit"));
  EXPECT_EQ(log.find("write_failed"), log.rfind("write_failed")) << "one line, not one per write";
  EXPECT_EQ(tier_->stats().n_write_failures, 4U);
  EXPECT_FALSE(has(5));
  std::filesystem::remove(directory_.path() + "/other");
  write(6, 5 * kMiB);
  EXPECT_TRUE(has(6));
  EXPECT_EQ(*tier_->read(tier_->find(0, sample_tokens(6)).id), sample_state(6, 5 * kMiB));
}

TEST_F(FullDisk, NoFileLeftToMake) {
  if (!mount("size=20m,nr_inodes=5")) GTEST_SKIP();  // the root, our directory, its lock, two files
  CaptureStderr();
  for (std::uint64_t number = 1; number <= 4; ++number) write(number, 1000);
  EXPECT_THAT(GetCapturedStderr(), testing::HasSubstr("No space left on device"));
  EXPECT_EQ(tier_->stats().n_write_failures, 2U);
  EXPECT_TRUE(has(1) && has(2));
}

}  // namespace
}  // namespace slipstream
