#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <format>
#include <limits>
#include <numeric>

#include "base/mapping.h"
#include "base/unique_fd.h"
#include "cli/doctor/probes.h"

namespace slipstream::doctor {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  text.remove_prefix(first);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view key) {
  const auto at = meminfo.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::optional<std::uint64_t> kib = parse_number(meminfo.substr(at + key.size()));
  if (!kib || *kib > std::numeric_limits<std::uint64_t>::max() / 1024) return std::nullopt;
  return *kib * 1024;
}

// The limit of the cgroup we are in, from version 2 ("max" where there is none) or version 1
// (a number near 2^63 where there is none), as a container sees them.
std::optional<std::uint64_t> read_cgroup_limit(std::uint64_t total_bytes) {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const Result<std::string> text = read_small_file(path);
    if (!text) continue;
    const std::optional<std::uint64_t> limit = parse_number(*text);
    if (limit && *limit < total_bytes) return limit;
  }
  return std::nullopt;
}

// Decoding reads every weight once per token, so one core's read bandwidth bounds its tokens/s.
std::vector<Finding> probe_bandwidth() {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  constexpr int kPasses = 3;
  Result<Mapping> memory = Mapping::anonymous(kBytes);
  if (!memory) return {};
  std::memset(memory->bytes().data(), 1, kBytes);
  const std::span words(reinterpret_cast<const std::uint64_t*>(memory->bytes().data()),
                        kBytes / sizeof(std::uint64_t));
  double best_seconds = std::numeric_limits<double>::max();
  volatile std::uint64_t sink = 0;  // keeps the reads
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    sink = std::accumulate(words.begin(), words.end(), std::uint64_t{0});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best_seconds = std::min(best_seconds, took.count());
  }
  static_cast<void>(sink);
  const double gb_per_second = static_cast<double>(kBytes) / best_seconds / 1e9;
  return {{.status = Status::kGood,
           .topic = "memory speed",
           .value = std::format("{:.1f} GB/s read by one core: 1 GB of weights decodes at no more "
                                "than {:.0f} tokens/s on it",
                                gb_per_second, gb_per_second),
           .advice = ""}};
}

}  // namespace

std::string format_bytes(std::uint64_t n_bytes) {
  return std::format("{:.1f} GiB", static_cast<double>(n_bytes) / static_cast<double>(kGiB));
}

std::optional<MemoryInfo> parse_meminfo(std::string_view proc_meminfo) {
  const std::optional<std::uint64_t> total = meminfo_bytes(proc_meminfo, "MemTotal:");
  const std::optional<std::uint64_t> available = meminfo_bytes(proc_meminfo, "MemAvailable:");
  if (!total || !available) return std::nullopt;
  return MemoryInfo{
      .total_bytes = *total, .available_bytes = *available, .cgroup_limit_bytes = std::nullopt};
}

Finding judge_memory(const MemoryInfo& memory) {
  const std::uint64_t usable =
      std::min(memory.available_bytes, memory.cgroup_limit_bytes.value_or(memory.available_bytes));
  std::string value = std::format("{}, {} available", format_bytes(memory.total_bytes),
                                  format_bytes(memory.available_bytes));
  std::string advice;
  if (memory.cgroup_limit_bytes) {
    value += std::format(", limited to {} here", format_bytes(*memory.cgroup_limit_bytes));
    advice = "raise the container's or service's memory limit to use more";
  } else if (usable < 4 * kGiB) {
    advice = "close other programs, or choose models under 2 GiB";
  }
  return {.status = advice.empty() ? Status::kGood : Status::kNote,
          .topic = "memory",
          .value = std::move(value),
          .advice = std::move(advice)};
}

std::vector<Finding> probe_memory() {
  const Result<std::string> text = read_small_file("/proc/meminfo");
  std::optional<MemoryInfo> memory = text ? parse_meminfo(*text) : std::nullopt;
  if (!memory) {
    return {{.status = Status::kNote,
             .topic = "memory",
             .value = text ? "/proc/meminfo is not what we know" : text.error().message,
             .advice = "mount /proc in the container"}};
  }
  memory->cgroup_limit_bytes = read_cgroup_limit(memory->total_bytes);
  std::vector<Finding> findings = {judge_memory(*memory)};
  findings.append_range(probe_bandwidth());
  return findings;
}

}  // namespace slipstream::doctor
