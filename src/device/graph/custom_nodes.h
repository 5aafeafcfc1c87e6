// CustomNodes: nodes of a graph that run functions of ours on ggml's threads.
//
// When one of them fails, because memory runs out or a disk does, the others do nothing, because
// results of earlier nodes may be missing.
//
// Threads: owned by one backend; the functions run on ggml's threads.
// Errors:  status(); the reason is in the log.
#pragma once

#include <ggml.h>

#include <atomic>
#include <deque>

#include "base/result.h"
#include "device/guard.h"
#include "device/log.h"

namespace slipstream::turbo {

// Every thread of ggml calls it. A thread may be done before another begins.
using NodeFunction = void (*)(int thread_idx, int n_threads, void* task);
using FallibleNodeFunction = Result<void> (*)(int thread_idx, int n_threads, void* task);

class CustomNodes {
 public:
  void clear() {
    tasks_.clear();
    status_ = GGML_STATUS_SUCCESS;
  }
  // GGML_STATUS_ALLOC_FAILED: memory ran out. GGML_STATUS_FAILED: a function failed otherwise.
  [[nodiscard]] ggml_status status() const { return status_; }

  // A node that writes to the result memory of `op`. Valid until clear().
  [[nodiscard]] ggml_tensor* make(ggml_context* context, const ggml_tensor* op,
                                  NodeFunction function, void* task) {
    return make(context, op, {.function = function, .task = task, .status = &status_});
  }
  [[nodiscard]] ggml_tensor* make(ggml_context* context, const ggml_tensor* op,
                                  FallibleNodeFunction function, void* task) {
    return make(context, op, {.fallible = function, .task = task, .status = &status_});
  }

 private:
  struct Task {
    NodeFunction function = nullptr;
    FallibleNodeFunction fallible = nullptr;
    void* task;
    std::atomic<ggml_status>* status;
  };

  [[nodiscard]] ggml_tensor* make(ggml_context* context, const ggml_tensor* op, const Task& task) {
    tasks_.push_back(task);
    ggml_tensor* node =
        ggml_custom_4d(context, op->type, op->ne[0], op->ne[1], op->ne[2], op->ne[3], nullptr, 0,
                       run, GGML_N_TASKS_MAX, &tasks_.back());
    node->data = op->data;
    node->flags |= GGML_TENSOR_FLAG_COMPUTE;  // without it the CPU backend skips the node
    return node;
  }

  static void run(ggml_tensor* /*result*/, int thread_idx, int n_threads, void* data) {
    const auto& node = *static_cast<const Task*>(data);
    if (node.status->load() != GGML_STATUS_SUCCESS) return;
    const bool is_answered = is_done([&] {
      if (node.fallible == nullptr) return node.function(thread_idx, n_threads, node.task);
      const Result<void> done = node.fallible(thread_idx, n_threads, node.task);
      if (done) return;
      node.status->store(GGML_STATUS_FAILED);
      log_line(GGML_LOG_LEVEL_ERROR, done.error().message);
    });
    if (!is_answered) node.status->store(GGML_STATUS_ALLOC_FAILED);
  }

  std::atomic<ggml_status> status_ = GGML_STATUS_SUCCESS;
  std::deque<Task> tasks_;  // a deque, because tasks must keep their addresses
};

}  // namespace slipstream::turbo
