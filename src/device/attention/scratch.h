// Scratch: memory of a thread that grows to what was asked for once and stays; aligned to cache
// lines; its contents are not kept when it grows.
//
// Threads: one owner.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace slipstream::turbo {

template <typename T>
class Scratch {
 public:
  T* get(std::size_t n) {
    if (n > n_) {
      constexpr std::size_t kLine = 64;
      const std::size_t n_bytes = (n * sizeof(T) + kLine - 1) / kLine * kLine;
      memory_.reset(static_cast<T*>(std::aligned_alloc(kLine, n_bytes)));
      if (!memory_) throw std::bad_alloc();
      n_ = n;
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T, Free> memory_;
  std::size_t n_ = 0;
};

}  // namespace slipstream::turbo
