// The pool of threads that a program gives to the CPU backend: llama.cpp's --cpu-mask, --prio and
// --poll are in it.
//
// libllama hands it, before each graph, to the CPU backend and to no other, by a function that it
// asks the CPU backend's registry entry for. The backend inside our device computes nearly all of
// the graph and would do so on any core. So that entry gives out a function of ours, which notes
// the pool and calls ggml's own.
//
// Threads: a pool is noted for the thread that handed it over, which then computes the graph.
// Errors:  none; without a CPU backend of the known form nothing is noted.
#pragma once

#include <optional>

#include "device/ggml_abi/ggml_abi.h"

namespace slipstream::turbo {

// From now on, until the plugin is unloaded. At the first call only.
void watch_thread_pools(ggml_backend_reg_t cpu);

// What this thread handed over since it was last asked; a null pool takes the last one away.
[[nodiscard]] std::optional<ggml_threadpool_t> take_thread_pool();

// Gives a pool to a backend of the CPU device.
void set_thread_pool(ggml_backend_t cpu_backend, ggml_threadpool_t pool);

}  // namespace slipstream::turbo
