// CustomNodes: nodes of a graph that run functions of ours on ggml's threads.
//
// When memory runs out in one of them, the others do nothing, because results of earlier nodes may
// be missing.
//
// Threads: owned by one backend; the functions run on ggml's threads. Errors: is_out_of_memory().
#pragma once

#include <ggml.h>

#include <atomic>
#include <deque>

#include "device/guard.h"

namespace slipstream::turbo {

// Every thread of ggml calls it. A thread may be done before another begins.
using NodeFunction = void (*)(int thread_idx, int n_threads, void* task);

class CustomNodes {
 public:
  void clear() {
    tasks_.clear();
    is_out_of_memory_ = false;
  }
  [[nodiscard]] bool is_out_of_memory() const { return is_out_of_memory_; }

  // A node that writes to the result memory of `op`. Valid until clear().
  [[nodiscard]] ggml_tensor* make(ggml_context* context, const ggml_tensor* op,
                                  NodeFunction function, void* task) {
    tasks_.push_back({.function = function, .task = task, .is_out_of_memory = &is_out_of_memory_});
    ggml_tensor* node =
        ggml_custom_4d(context, op->type, op->ne[0], op->ne[1], op->ne[2], op->ne[3], nullptr, 0,
                       run, GGML_N_TASKS_MAX, &tasks_.back());
    node->data = op->data;
    node->flags |= GGML_TENSOR_FLAG_COMPUTE;  // without it the CPU backend skips the node
    return node;
  }

 private:
  struct Task {
    NodeFunction function;
    void* task;
    std::atomic<bool>* is_out_of_memory;
  };

  static void run(ggml_tensor* /*result*/, int thread_idx, int n_threads, void* data) {
    const auto& node = *static_cast<const Task*>(data);
    if (node.is_out_of_memory->load()) return;
    if (!is_done([&] { node.function(thread_idx, n_threads, node.task); })) {
      node.is_out_of_memory->store(true);
    }
  }

  std::atomic<bool> is_out_of_memory_ = false;
  std::deque<Task> tasks_;  // a deque, because tasks must keep their addresses
};

}  // namespace slipstream::turbo
