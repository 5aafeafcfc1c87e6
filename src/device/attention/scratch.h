// Scratch: memory of a thread that grows to what was asked for once and stays; aligned to cache
// lines; its contents are not kept when it grows.
//
// Threads: one owner. Errors: std::bad_alloc, after which it has what it had before.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace slipstream::turbo {

template <typename T>
class Scratch {
 public:
  T* get(std::size_t n) {
    if (n > n_) {
      const std::size_t n_bytes = (n * sizeof(T) + kLine - 1) / kLine * kLine;
      memory_.reset(static_cast<T*>(::operator new(n_bytes, kAlignment)));
      n_ = n;
    }
    return memory_.get();
  }

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::align_val_t kAlignment{kLine};
  struct Free {
    void operator()(T* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<T, Free> memory_;
  std::size_t n_ = 0;
};

}  // namespace slipstream::turbo
