// Test support for kernels: runs a test on each instruction set of the machine, and provides memory
// with a guard page behind its end.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace slipstream::turbo {

// Memory that ends where an unreadable page begins: reading one byte past the end crashes.
template <typename T>
class Guarded {
 public:
  explicit Guarded(std::size_t n) : n_(n) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    mapped_ = (n * sizeof(T) + page - 1) / page * page + page;
    start_ = static_cast<std::byte*>(
        ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(start_ + mapped_ - page, page, PROT_NONE);
    end_ = start_ + mapped_ - page;
  }
  ~Guarded() { ::munmap(start_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  std::span<T> span() { return {reinterpret_cast<T*>(end_ - n_ * sizeof(T)), n_}; }
  T* data() { return span().data(); }

 private:
  std::size_t n_;
  std::size_t mapped_ = 0;
  std::byte* start_ = nullptr;
  std::byte* end_ = nullptr;
};

// Calls `test` once with each instruction set enabled alone.
template <typename Test>
void on_every_target(const Test& test) {
  // HWY_TARGETS has the targets that kernels are compiled for. Others would run the baseline again.
  for (std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS; targets != 0;
       targets &= targets - 1) {
    const std::int64_t target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    test();
    hwy::SetSupportedTargetsForTest(0);
  }
}

}  // namespace slipstream::turbo
