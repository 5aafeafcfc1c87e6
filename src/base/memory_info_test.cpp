// Memory of other machines, made of files.
#include "base/memory_info.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "base/format_bytes.h"

namespace slipstream {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

class Machine : public testing::Test {
 protected:
  Machine() {
    std::string pattern = testing::TempDir() + "slipstream-memory-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    write("meminfo", format_text("MemTotal: {} kB\nMemFree: 1 kB\nMemAvailable: {} kB\n",
                                 16 * kGiB / 1024, 12 * kGiB / 1024));
  }
  ~Machine() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, std::string_view text) {
    const std::filesystem::path path = directory_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  MemoryInfo read() {
    const Result<MemoryInfo> memory =
        read_memory_info({.meminfo = (directory_ / "meminfo").string(),
                          .own_cgroup = (directory_ / "own").string(),
                          .cgroup_root = (directory_ / "cgroup").string()});
    EXPECT_TRUE(memory) << memory.error().message;
    return memory.value_or(MemoryInfo{});
  }

  std::filesystem::path directory_;
};

TEST_F(Machine, WithoutLimitsHasWhatIsAvailable) {
  EXPECT_EQ(read().total_bytes, 16 * kGiB);
  EXPECT_EQ(read().usable_bytes(), 12 * kGiB);
  write("own", "0::/a.service\n");
  write("cgroup/a.service/memory.max", "max\n");
  EXPECT_EQ(read().usable_bytes(), 12 * kGiB);
  EXPECT_FALSE(read().cgroup_limit_bytes);
}

TEST_F(Machine, AServiceHasWhatItsOwnLimitLeaves) {
  write("own", "0::/system.slice/a.service\n");
  write("cgroup/system.slice/a.service/memory.max", format_text("{}\n", 4 * kGiB));
  EXPECT_EQ(read().cgroup_limit_bytes, 4 * kGiB);
  EXPECT_EQ(read().usable_bytes(), 4 * kGiB);
  write("cgroup/system.slice/a.service/memory.current", format_text("{}\n", 3 * kGiB));
  EXPECT_EQ(read().usable_bytes(), 1 * kGiB);
  write("cgroup/system.slice/a.service/memory.stat",
        format_text("anon 5\nfile 9\ninactive_file {}\nactive_file {}\n", kGiB, kGiB));
  EXPECT_EQ(read().usable_bytes(), 3 * kGiB) << "the cache of files can be had back";
}

TEST_F(Machine, TheGroupThatLeavesLeastCounts) {
  write("own", "0::/slice/a\n");
  write("cgroup/slice/a/memory.max", format_text("{}\n", 4 * kGiB));
  write("cgroup/slice/memory.max", format_text("{}\n", 8 * kGiB));
  write("cgroup/slice/memory.current", format_text("{}\n", 7 * kGiB));
  EXPECT_EQ(read().cgroup_limit_bytes, 4 * kGiB);
  EXPECT_EQ(read().usable_bytes(), 1 * kGiB);
}

TEST_F(Machine, AContainerSeesItsLimitAtTheRoot) {
  write("own", "4:cpu,memory:/docker/host-only\n3:cpuset:/\n0::/../other\n");
  write("cgroup/memory/memory.limit_in_bytes", format_text("{}\n", 2 * kGiB));
  write("cgroup/memory/memory.usage_in_bytes", format_text("{}\n", kGiB));
  write("cgroup/memory/memory.stat", format_text("total_inactive_file {}\n", kGiB / 2));
  EXPECT_EQ(read().usable_bytes(), kGiB + kGiB / 2);
  write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read().usable_bytes(), 12 * kGiB);
}

TEST_F(Machine, AGroupOverItsLimitHasNothing) {
  write("own", "0::/a\n");
  write("cgroup/a/memory.max", "1000\n");
  write("cgroup/a/memory.current", "2000\n");
  EXPECT_EQ(read().usable_bytes(), 0U);
}

TEST_F(Machine, UnreadableGroupsLimitNothing) {
  write("own", "\n:\n0:\nnonsense\n0::/a\n");
  write("cgroup/a/memory.max", "several\n");
  EXPECT_EQ(read().usable_bytes(), 12 * kGiB);
}

TEST(MemoryInfo, ReadsMeminfoAndRefusesOtherText) {
  const MemoryInfo memory =
      parse_meminfo("MemTotal:    16777216 kB\nMemAvailable: 8388608 kB\n").value_or(MemoryInfo{});
  EXPECT_EQ(memory.total_bytes, 16 * kGiB);
  EXPECT_EQ(memory.available_bytes, 8 * kGiB);
  EXPECT_FALSE(parse_meminfo("MemTotal:    16777216 kB\n"));
  EXPECT_FALSE(parse_meminfo("MemTotal: many kB\nMemAvailable: 1 kB\n"));
  EXPECT_FALSE(parse_meminfo("MemTotal: 99999999999999999999999 kB\nMemAvailable: 1 kB\n"));
  EXPECT_FALSE(parse_meminfo(""));
}

TEST(MemoryInfo, ThisMachineHasSome) {
  const Result<std::uint64_t> bytes = available_memory();
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_GT(*bytes, 0U);
}

TEST(FormatBytes, ChoosesTheUnit) {
  EXPECT_EQ(format_bytes(0), "0 MiB");
  EXPECT_EQ(format_bytes(640 * (kGiB / 1024)), "640 MiB");
  EXPECT_EQ(format_bytes(kGiB), "1.0 GiB");
  EXPECT_EQ(format_bytes(23 * kGiB + 4 * (kGiB / 10)), "23.4 GiB");
}

}  // namespace
}  // namespace slipstream
