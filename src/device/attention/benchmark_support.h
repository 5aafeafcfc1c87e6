// What the benchmarks of attention share: threads, times, and reads of memory to compare with.
//
// Threads: one owner.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "contract/environment.h"
#include "device/attention/kernel_choice.h"

namespace slipstream::turbo {

inline double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Of all threads: what others do on the machine counts for little.
inline double processor_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

inline void on_threads(int n_threads, const std::function<void(int)>& work) {
  std::vector<std::jthread> threads;
  for (int i = 1; i < n_threads; ++i) threads.emplace_back([&, i] { work(i); });
  work(0);
}

// Memory that is read once from its start to its end, by each thread a part.
class ReadMemory {
 public:
  explicit ReadMemory(std::size_t n_bytes) : words_(n_bytes / sizeof(std::uint64_t), 1) {}

  [[nodiscard]] std::size_t n_bytes() const { return words_.size() * sizeof(std::uint64_t); }
  void read(int n_threads) const {
    on_threads(n_threads, [&](int thread) {
      const std::size_t n = words_.size() / static_cast<std::size_t>(n_threads);
      const auto* start = words_.data() + n * static_cast<std::size_t>(thread);
      benchmark::DoNotOptimize(std::reduce(start, start + n, std::uint64_t{0}, std::bit_xor<>()));
    });
  }
  // The same, with every line fetched 4 KiB before it is read. On some machines that is faster.
  void read_with_prefetch(int n_threads) const {
    constexpr std::size_t kLineWords = 8;
    constexpr std::size_t kAhead = 64 * kLineWords;
    on_threads(n_threads, [&](int thread) {
      const std::size_t n = words_.size() / static_cast<std::size_t>(n_threads);
      const auto* start = words_.data() + n * static_cast<std::size_t>(thread);
      std::array<std::uint64_t, kLineWords> sums{};
      for (std::size_t i = 0; i + kLineWords <= n; i += kLineWords) {
        __builtin_prefetch(start + i + kAhead);  // behind the end it does nothing
        for (std::size_t k = 0; k < kLineWords; ++k) sums[k] ^= start[i + k];
      }
      benchmark::DoNotOptimize(sums);
    });
  }

 private:
  std::vector<std::uint64_t> words_;
};

// As the plugin does it. False: it has said why not.
inline bool limit_kernels_of_environment() {
  const char* kernels = std::getenv(kKernelsVariable);
  if (kernels == nullptr) return true;
  const auto limited = limit_kernels(kernels);
  if (!limited) std::fputs((limited.error().message + "\n").c_str(), stderr);
  return limited.has_value();
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// main() of a program of benchmarks.
inline int run_benchmarks(int argc, char** argv, void (*register_all)()) {
  if (!limit_kernels_of_environment()) return 2;
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace slipstream::turbo
