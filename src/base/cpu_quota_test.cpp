#include "base/cpu_quota.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace slipstream {
namespace {

// A machine whose groups are files of the test.
class CpuQuota : public testing::Test {
 protected:
  CpuQuota() : root_(testing::TempDir() + "cpu_quota_test_" + std::to_string(::getpid())) {}
  ~CpuQuota() override { std::filesystem::remove_all(root_); }
  CpuQuota(const CpuQuota&) = delete;
  CpuQuota& operator=(const CpuQuota&) = delete;

  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] std::optional<int> cpus() const {
    return cgroup_cpus({.own_cgroup = root_ / "own", .cgroup_root = root_ / "cgroup"});
  }

  const std::filesystem::path root_;
};

TEST_F(CpuQuota, WithoutOneThereIsNone) {
  EXPECT_EQ(cpus(), std::nullopt);
  write("own", "0::/\n");
  write("cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(cpus(), std::nullopt);
  write("own", "4:cpu,cpuacct:/\n");
  write("cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpus(), std::nullopt);
}

TEST_F(CpuQuota, TheSmallestOnTheWayUpCounts) {
  write("own", "0::/kube/pod/main\n");
  write("cgroup/cpu.max", "max 100000\n");
  write("cgroup/kube/pod/cpu.max", "250000 100000\n");
  write("cgroup/kube/pod/main/cpu.max", "400000 100000\n");
  EXPECT_EQ(cpus(), 2) << "whole ones";
  write("cgroup/kube/pod/main/cpu.max", "20000 100000\n");
  EXPECT_EQ(cpus(), 1) << "at least one";
}

TEST_F(CpuQuota, InsideAContainerTheRootIsItsGroup) {
  write("own", "0::/../../host/only\n");
  write("cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(cpus(), 3);
  write("own", "3:memory:/x\n2:cpuacct,cpu:/docker/abc\n");
  write("cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  write("cgroup/cpu/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(cpus(), 3);
}

}  // namespace
}  // namespace slipstream
