// MemoryInfo: how much memory the machine has, how much of it can still be had, and how much of
// that a control group (a container, a service) lets this process have.
//
// Every group from ours up to the root may have a limit; what counts is the one that leaves least.
// File pages that the kernel keeps as a cache count as available, as they do in MemAvailable.
//
// Threads: thread-safe.
// Errors:  kIo, kNotFound, ... where /proc/meminfo cannot be read, kUnsupported where its format is
//          unknown. A control group that cannot be read has no limit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slipstream {

struct MemoryInfo {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;                    // of the machine
  std::optional<std::uint64_t> cgroup_limit_bytes;      // unset: none below the machine's memory
  std::optional<std::uint64_t> cgroup_available_bytes;  // what is left of it

  [[nodiscard]] std::uint64_t usable_bytes() const {
    return std::min(available_bytes, cgroup_available_bytes.value_or(available_bytes));
  }
};

// Where to look; tests have machines of their own.
struct MemoryPlaces {
  std::string meminfo = "/proc/meminfo";
  std::string own_cgroup = "/proc/self/cgroup";
  std::string cgroup_root = "/sys/fs/cgroup";
};
[[nodiscard]] Result<MemoryInfo> read_memory_info(const MemoryPlaces& places = {});

// usable_bytes() of this machine, now.
[[nodiscard]] Result<std::uint64_t> available_memory();

// Total and available memory from the text of /proc/meminfo.
[[nodiscard]] Result<MemoryInfo> parse_meminfo(std::string_view proc_meminfo);

}  // namespace slipstream
