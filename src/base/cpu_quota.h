// cgroup_cpus(): how many CPUs' time a control group (a container, a service) lets this process
// have.
//
// Every group from ours up to the root may have a quota (cpu.max, or cpu.cfs_quota_us of version
// 1); what counts is the smallest. Which cores may be used at all is not looked at here: the
// kernel's affinity says so.
//
// Threads: thread-safe. Errors: none: a group that cannot be read has no quota.
#pragma once

#include <optional>
#include <string>

namespace slipstream {

// Where to look; tests have machines of their own.
struct CpuPlaces {
  std::string own_cgroup = "/proc/self/cgroup";
  std::string cgroup_root = "/sys/fs/cgroup";
};

// Whole CPUs, at least 1; none: no quota.
[[nodiscard]] std::optional<int> cgroup_cpus(const CpuPlaces& places = {});

}  // namespace slipstream
