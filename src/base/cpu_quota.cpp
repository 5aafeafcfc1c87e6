#include "base/cpu_quota.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <ranges>
#include <string_view>

#include "base/unique_fd.h"

namespace slipstream {
namespace {

using std::filesystem::path;

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number > 0 ? std::optional(number) : std::nullopt;  // -1: no quota
}

std::optional<double> ratio(std::optional<double> quota, std::optional<double> period) {
  if (!quota || !period) return std::nullopt;
  return *quota / *period;
}

// "max 100000", or "150000 100000" for one and a half.
std::optional<double> quota_of(const path& group, bool is_version_2) {
  const auto read = [&group](const char* name) {
    return read_small_file((group / name).string()).value_or("");
  };
  if (!is_version_2) {
    return ratio(number_in(read("cpu.cfs_quota_us")), number_in(read("cpu.cfs_period_us")));
  }
  const std::string line = read("cpu.max");
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view period = std::string_view(line).substr(std::min(space + 1, line.size()));
  return ratio(number_in(line), number_in(period));
}

// Of the group and of those above it. Inside a container the path may be one that only the host
// has; then the root is the container's own group.
void apply_quotas(std::optional<double>& cpus, const path& root, std::string_view below_root,
                  bool is_version_2) {
  path below(below_root.substr(std::min(below_root.find_first_not_of('/'), below_root.size())));
  if (std::ranges::contains(below, "..")) below.clear();
  for (;; below = below.parent_path()) {
    const auto quota = quota_of(below.empty() ? root : root / below, is_version_2);
    if (quota) cpus = std::min(cpus.value_or(*quota), *quota);
    if (below.empty()) return;
  }
}

}  // namespace

// Lines of /proc/self/cgroup: "0::/path" is version 2, "4:cpu,cpuacct:/path" version 1.
std::optional<int> cgroup_cpus(const CpuPlaces& places) {
  const std::string own = read_small_file(places.own_cgroup).value_or("0::/\n1:cpu:/\n");
  std::optional<double> cpus;
  for (const auto line_range : std::views::split(own, '\n')) {
    const std::string_view line(line_range);
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view group = line.substr(second + 1);
    if (controllers.empty()) {
      apply_quotas(cpus, places.cgroup_root, group, true);
    } else if (std::ranges::contains(std::views::split(controllers, ','), "cpu",
                                     [](const auto word) { return std::string_view(word); })) {
      apply_quotas(cpus, path(places.cgroup_root) / "cpu", group, false);
    }
  }
  if (!cpus) return std::nullopt;
  return std::max(1, static_cast<int>(*cpus));
}

}  // namespace slipstream
