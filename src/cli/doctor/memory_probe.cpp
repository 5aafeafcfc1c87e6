#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/format.h"
#include "base/format_bytes.h"
#include "base/mapping.h"
#include "cli/doctor/probes.h"

namespace slipstream::doctor {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// Decoding reads every weight once per token, so one core's read bandwidth bounds its tokens/s.
std::vector<Finding> probe_bandwidth() {
  const double gb_per_second = read_bandwidth_gb_per_s();
  if (gb_per_second <= 0) return {};
  return {{.status = Status::kGood,
           .topic = "memory speed",
           .value = format_text("{:.1f} GB/s read by one core: 1 GB of weights decodes at no more "
                                "than {:.0f} tokens/s on it",
                                gb_per_second, gb_per_second),
           .advice = ""}};
}

}  // namespace

double read_bandwidth_gb_per_s() {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  constexpr int kPasses = 3;
  Result<Mapping> memory = Mapping::anonymous(kBytes);
  if (!memory) return 0;
  std::memset(memory->bytes().data(), 1, kBytes);
  const std::span words(reinterpret_cast<const std::uint64_t*>(memory->bytes().data()),
                        kBytes / sizeof(std::uint64_t));
  double best_seconds = std::numeric_limits<double>::max();
  volatile std::uint64_t sink = 0;  // keeps the compiler from removing the reads
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    sink = std::accumulate(words.begin(), words.end(), std::uint64_t{0});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best_seconds = std::min(best_seconds, took.count());
  }
  static_cast<void>(sink);
  return static_cast<double>(kBytes) / best_seconds / 1e9;
}

Finding judge_memory(const MemoryInfo& memory) {
  std::string value = format_text("{}, {} available", format_bytes(memory.total_bytes),
                                  format_bytes(memory.available_bytes));
  std::string advice;
  if (memory.cgroup_limit_bytes) {
    value += format_text(", limited to {} here", format_bytes(*memory.cgroup_limit_bytes));
    advice = "raise the container's or service's memory limit to use more";
  } else if (memory.usable_bytes() < 4 * kGiB) {
    advice = "close other programs, or choose models under 2 GiB";
  }
  return {.status = advice.empty() ? Status::kGood : Status::kNote,
          .topic = "memory",
          .value = std::move(value),
          .advice = std::move(advice)};
}

std::vector<Finding> probe_memory() {
  const Result<MemoryInfo> memory = read_memory_info();
  if (!memory) {
    return {{.status = Status::kNote,
             .topic = "memory",
             .value = memory.error().message,
             .advice = "mount /proc in the container"}};
  }
  std::vector<Finding> findings = {judge_memory(*memory)};
  findings.append_range(probe_bandwidth());
  return findings;
}

}  // namespace slipstream::doctor
