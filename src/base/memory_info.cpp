#include "base/memory_info.h"

#include <charconv>
#include <filesystem>
#include <limits>
#include <ranges>
#include <vector>

#include "base/unique_fd.h"

namespace slipstream {
namespace {

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  text.remove_prefix(first);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return number;
}

// The number behind a key that begins a line.
std::optional<std::uint64_t> find_number(std::string_view lines, std::string_view key) {
  for (const auto line_range : std::views::split(lines, '\n')) {
    const std::string_view line(line_range);
    if (line.starts_with(key)) return parse_number(line.substr(key.size()));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view key) {
  const std::optional<std::uint64_t> kib = find_number(meminfo, key);
  if (!kib || *kib > std::numeric_limits<std::uint64_t>::max() / 1024) return std::nullopt;
  return *kib * 1024;
}

// The files of a memory control group, whose names differ between the versions of control groups.
struct CgroupNames {
  std::string_view limit;  // "max" or a number near 2^63 where there is none
  std::string_view usage;
  std::string_view active_file;  // in memory.stat
  std::string_view inactive_file;
};
constexpr CgroupNames kVersion1 = {.limit = "memory.limit_in_bytes",
                                   .usage = "memory.usage_in_bytes",
                                   .active_file = "total_active_file ",
                                   .inactive_file = "total_inactive_file "};
constexpr CgroupNames kVersion2 = {.limit = "memory.max",
                                   .usage = "memory.current",
                                   .active_file = "active_file ",
                                   .inactive_file = "inactive_file "};

std::optional<std::uint64_t> read_number(const std::filesystem::path& path) {
  const Result<std::string> text = read_small_file(path.string());
  return text ? parse_number(*text) : std::nullopt;
}

// What the group still has: its limit without what it uses, except for the cache of files.
std::uint64_t left_of(std::uint64_t limit, const std::filesystem::path& group,
                      const CgroupNames& names) {
  const std::uint64_t usage = read_number(group / names.usage).value_or(0);
  const std::string stat = read_small_file((group / "memory.stat").string()).value_or("");
  const std::uint64_t cache = find_number(stat, names.active_file).value_or(0) +
                              find_number(stat, names.inactive_file).value_or(0);
  const std::uint64_t kept = usage - std::min(usage, cache);
  return limit - std::min(limit, kept);
}

// Looks at the group `path` under `root` and at those above it. Inside a container the path may be
// one that only the host has; then the root is the container's own group.
void apply_limits(MemoryInfo& memory, const std::filesystem::path& root, std::string_view path,
                  const CgroupNames& names) {
  std::filesystem::path below(path.substr(std::min(path.find_first_not_of('/'), path.size())));
  if (std::ranges::contains(below, "..")) below.clear();
  for (;; below = below.parent_path()) {
    const std::filesystem::path group = below.empty() ? root : root / below;
    const std::optional<std::uint64_t> limit = read_number(group / names.limit);
    if (limit && *limit < memory.total_bytes) {
      const auto at_most = [](std::optional<std::uint64_t>& bytes, std::uint64_t other) {
        bytes = std::min(bytes.value_or(other), other);
      };
      at_most(memory.cgroup_limit_bytes, *limit);
      at_most(memory.cgroup_available_bytes, left_of(*limit, group, names));
    }
    if (below.empty()) return;
  }
}

// Lines of /proc/self/cgroup: "0::/path" is version 2, "4:memory:/path" version 1.
void apply_cgroups(MemoryInfo& memory, std::string_view own_cgroup,
                   const std::filesystem::path& root) {
  for (const auto line_range : std::views::split(own_cgroup, '\n')) {
    const std::string_view line(line_range);
    const auto first = line.find(':');
    if (first == std::string_view::npos) continue;
    const auto second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (controllers.empty()) {
      apply_limits(memory, root, path, kVersion2);
    } else if (std::ranges::contains(std::views::split(controllers, ','), "memory",
                                     [](const auto word) { return std::string_view(word); })) {
      apply_limits(memory, root / "memory", path, kVersion1);
    }
  }
}

}  // namespace

Result<MemoryInfo> parse_meminfo(std::string_view proc_meminfo) {
  const std::optional<std::uint64_t> total = meminfo_bytes(proc_meminfo, "MemTotal:");
  const std::optional<std::uint64_t> available = meminfo_bytes(proc_meminfo, "MemAvailable:");
  if (!total || !available) {
    return fail(Code::kUnsupported, "/proc/meminfo has an unknown format");
  }
  return MemoryInfo{.total_bytes = *total,
                    .available_bytes = *available,
                    .cgroup_limit_bytes = std::nullopt,
                    .cgroup_available_bytes = std::nullopt};
}

Result<MemoryInfo> read_memory_info(const MemoryPlaces& places) {
  const Result<std::string> meminfo = read_small_file(places.meminfo);
  if (!meminfo) return std::unexpected(meminfo.error());
  Result<MemoryInfo> memory = parse_meminfo(*meminfo);
  if (!memory) return memory;
  // Without a list of groups the root still says what a container may use.
  const std::string own = read_small_file(places.own_cgroup).value_or("0::/\n1:memory:/\n");
  apply_cgroups(*memory, own, places.cgroup_root);
  return memory;
}

Result<std::uint64_t> available_memory() {
  const Result<MemoryInfo> memory = read_memory_info();
  if (!memory) return std::unexpected(memory.error());
  return memory->usable_bytes();
}

}  // namespace slipstream
