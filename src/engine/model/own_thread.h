// on_own_thread(): runs something on a thread that ends with it, and waits.
//
// For ggml's work beside the engine's. Packaged ggml computes with OpenMP, whose GNU runtime keeps
// a team of threads for every thread that ever computed. As soon as all teams together have more
// threads than the machine has cores, its barriers no longer spin: each of the hundreds in a token
// sleeps instead. A model loaded on another thread than the engine's cost an eighth of the speed
// that way (90,000 sleeps in 128 steps instead of 15). A team ends with its thread.
//
// Threads: thread-safe. Errors: what is thrown there is thrown here.
#pragma once

#include <exception>
#include <functional>
#include <thread>

namespace slipstream {

inline void on_own_thread(const std::function<void()>& work) {
  std::exception_ptr failure;
  std::thread([&] {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace slipstream
