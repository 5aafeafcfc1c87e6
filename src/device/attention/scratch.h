// Scratch: rows of memory, aligned to cache lines. The memory grows to the largest size asked for
// and never shrinks.
//
// Threads: one owner. Errors: std::bad_alloc, after which the memory is as before.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace slipstream::turbo {

template <typename T>
class Scratch {
 public:
  // Rows begin `stride` elements apart. Their contents are undefined after the call.
  void resize(std::size_t n_rows, std::size_t stride = 1) {
    if (const std::size_t n = n_rows * stride; n > n_) {
      const std::size_t n_bytes = (n * sizeof(T) + kLine - 1) / kLine * kLine;
      memory_.reset(static_cast<T*>(::operator new(n_bytes, kAlignment)));
      n_ = n;
    }
    stride_ = stride;
  }
  // REQUIRES: resize() has been called, with more than i rows.
  [[nodiscard]] T* row(std::size_t i) const { return memory_.get() + i * stride_; }
  [[nodiscard]] T* data() const { return memory_.get(); }
  [[nodiscard]] std::size_t stride() const { return stride_; }

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::align_val_t kAlignment{kLine};
  struct Free {
    void operator()(T* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<T, Free> memory_;
  std::size_t n_ = 0;
  std::size_t stride_ = 1;
};

}  // namespace slipstream::turbo
