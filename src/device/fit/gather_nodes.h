// GatherNodes: the nodes that are added to a graph to collect keys and queries (fit_run.h).
//
// RoPE turns vectors according to the position of their token, and with them their mean and the
// directions in which they differ. A basis made from tokens near the start is useless farther out.
// So vectors are collected as if their tokens were spread over a long context: each ROPE runs a
// second time, at random positions, into separate memory. Its formula need not be known for that.
//
// Threads: owned by one backend.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "device/fit/fit_run.h"

namespace slipstream::turbo {

class GatherNodes {
 public:
  // Decides what is collected; nothing if run is null.
  void plan(ggml_cgraph* graph, std::shared_ptr<FitRun> run);
  // The largest number of nodes and tensors that will be added.
  [[nodiscard]] std::size_t n_nodes() const { return 2 * tasks_.size(); }
  [[nodiscard]] std::size_t n_tensors() const { return 3 * tasks_.size(); }
  // Adds the nodes that must be computed before `node`, because it may overwrite what they read.
  void add_before(const ggml_tensor* node, ggml_context* context, ggml_cgraph* shadow);

 private:
  // n_tokens * n_streams tokens with n_heads vectors each, with any strides.
  struct Vectors {
    const std::byte* data = nullptr;
    std::int64_t n_heads = 0;
    std::int64_t n_tokens = 0;
    std::int64_t n_streams = 1;
    std::size_t head_bytes = 0;
    std::size_t token_bytes = 0;
    std::size_t stream_bytes = 0;
  };
  struct Task {
    KeyMoments* moments = nullptr;
    bool is_keys = false;
    const ggml_tensor* rope = nullptr;  // null: vectors are collected unchanged
    float factor = 1;
    Vectors vectors;
    std::vector<std::int32_t> positions;  // random
  };

  void plan_queries(const ggml_tensor* attention, FitRun& run);
  void plan_keys(const ggml_tensor* write, FitRun& run);
  ggml_tensor* turn_elsewhere(Task& task, ggml_context* context);
  static void run_gather(ggml_tensor*, int thread_idx, int n_threads, void* task);
  static std::vector<float> read(const Task& task, std::int64_t first_head, std::int64_t n_heads);

  std::shared_ptr<FitRun> run_;  // the run of this graph; tasks point into it
  std::deque<Task> tasks_;
  std::multimap<const ggml_tensor*, Task*> before_;  // by the node that must wait
  std::map<int, KeyMoments*> layers_;                // layers of this graph
  std::vector<float> turned_;  // the result of one ROPE, until it has been collected
  std::uint64_t n_drawn_ = 0;
};

}  // namespace slipstream::turbo
