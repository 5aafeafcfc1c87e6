// on_own_thread(): runs a function on a new thread and waits for it.
//
// For work of ggml beside the engine's. Packaged ggml computes with OpenMP, whose GNU runtime keeps
// a team of threads for every thread that ever computed. Once all teams together have more threads
// than the machine has cores, its barriers no longer spin: each of the hundreds per token sleeps
// instead. A model loaded on another thread than the engine's lost an eighth of its speed that way
// (90,000 sleeps in 128 steps instead of 15). A team ends with its thread.
//
// Threads: thread-safe. Errors: an exception of the function is rethrown here.
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
