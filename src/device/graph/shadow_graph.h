// ShadowGraph: the graph that the inner CPU backend computes instead of libllama's. One
// graph_compute runs it on the CPU backend's own threads.
//
// Nodes that do not touch the cache are the same tensors. A node that does is replaced by nodes
// that write to the same result memory:
//   - row writes and attention on a compressed cache, in libllama's shapes: a custom node;
//   - anything else on a plain cache: a copy of the node that points to the cache's memory;
//   - anything else on a compressed cache (such as shifting keys): the cache is expanded to f16,
//     the copied node runs on that, and what it writes is compressed again.
// A product of weights with many columns can be replaced too (product_nodes.h).
//
// Threads: owned by one backend. Errors: kOutOfMemory; kIo if codes may lie in a file.
#pragma once

#include <ggml-cpp.h>

#include <deque>
#include <memory>
#include <vector>

#include "base/mapping.h"
#include "base/result.h"
#include "device/attention/attention.h"
#include "device/fit/gather_nodes.h"
#include "device/graph/custom_nodes.h"
#include "device/graph/product_nodes.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {

class ShadowGraph {
 public:
  struct Options {
    // With it nodes are added that collect keys for a profile (fit/gather_nodes.h).
    std::shared_ptr<FitRun> fit_run = nullptr;
    bool has_products = false;  // whether our own kernels multiply with many columns
  };
  // The result is valid until the next build() and no longer than `graph`.
  [[nodiscard]] Result<ggml_cgraph*> build(ggml_cgraph* graph, Options options);
  // Whether the graph built last was computed. If not, its results are useless, and so are rows of
  // caches that it has changed in part (CompressedCache::lose).
  [[nodiscard]] ggml_status end();

 private:
  struct WriteTask {
    const ggml_tensor* op;  // SET_ROWS
    CacheTensor* cache;
  };
  struct ExpandTask {
    CacheTensor* cache;
    ggml_fp16_t* rows;  // all rows of the cache
    bool is_written = false;
  };

  void add_custom(const ggml_tensor* op, NodeFunction function, void* task);
  void add_custom(const ggml_tensor* op, FallibleNodeFunction function, void* task);
  Result<void> add_on_cache(ggml_tensor* node);
  ggml_tensor* copy_of(const ggml_tensor* tensor, std::byte* rows);
  Result<std::byte*> expansion(std::size_t idx, std::size_t n_bytes);

  SharedPlan* plan_of(const ggml_tensor* attention);
  Result<void> keep_precise(const WriteTask& write);
  [[nodiscard]] const ggml_tensor* own_cells(const ggml_tensor* attention) const;

  static void run_plan(int thread_idx, int n_threads, void* plan);
  static Result<void> run_observe(int thread_idx, int n_threads, void* task);
  static Result<void> run_write(int thread_idx, int n_threads, void* task);
  static Result<void> run_read(int thread_idx, int n_threads, void* task);
  static Result<void> run_expand(int thread_idx, int n_threads, void* task);
  static Result<void> run_compress(int thread_idx, int n_threads, void* task);

  ggml_context_ptr context_;
  ggml_cgraph* shadow_ = nullptr;
  CustomNodes nodes_;
  // Deques, because tasks must keep their addresses while more are added.
  std::deque<WriteTask> writes_;
  std::deque<AttentionTask> reads_;
  std::deque<SharedPlan> plans_;  // this graph uses the first n_plans_; the rest keep their memory
  std::size_t n_plans_ = 0;
  std::deque<ExpandTask> expands_;
  GatherNodes gather_;
  ProductNodes products_;
  std::vector<Mapping> expansions_;
  std::vector<Mapping> outgrown_;  // expansions of this graph that were too small for later nodes
  // One for each shape of layers. The layers of that shape share ownership of it.
  std::vector<std::shared_ptr<CompressedCache>> scratches_;
};

}  // namespace slipstream::turbo
