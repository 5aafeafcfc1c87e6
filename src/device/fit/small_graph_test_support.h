// Test support: the graph of one layer of a model, as libllama builds it.
#pragma once

#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "device/graph/one_thread_test_support.h"
#include "device/graph/shadow_graph.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {

class SmallGraph {
 public:
  static constexpr int kDim = 48;
  static constexpr std::int64_t kKvHeads = 2;
  static constexpr std::int64_t kQueryHeads = 4;
  static constexpr std::int64_t kTokens = 512;

  // Applies RoPE, or whatever else a model does between a matrix product and attention.
  using Turn = std::function<ggml_tensor*(ggml_context*, ggml_tensor* vectors, ggml_tensor* pos)>;

  // n_lists: the number of lists of positions, which depends on the kind of RoPE. scheme: that of
  // the caches.
  explicit SmallGraph(const Turn& turn, std::int64_t n_lists = 1, const char* scheme = "f16")
      : type_(parse_scheme(scheme).value()) {
    if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr) ggml_backend_load_all();
    context_.reset(
        ggml_init({.mem_size = std::size_t{1} << 20U, .mem_buffer = nullptr, .no_alloc = true}));
    ggml_context* context = context_.get();
    norm = ggml_new_tensor_1d(context, GGML_TYPE_F32, kDim);
    ggml_set_name(norm, "blk.0.attn_norm.weight");
    queries = ggml_new_tensor_3d(context, GGML_TYPE_F32, kDim, kQueryHeads, kTokens);
    keys = ggml_new_tensor_3d(context, GGML_TYPE_F32, kDim, kKvHeads, kTokens);
    positions = ggml_new_tensor_1d(context, GGML_TYPE_I32, kTokens * n_lists);
    ggml_tensor* cells = ggml_new_tensor_1d(context, GGML_TYPE_I64, kTokens);
    ggml_tensor* mask = ggml_new_tensor_2d(context, GGML_TYPE_F16, kTokens, kTokens);
    ggml_tensor* cache_k = new_cache("cache_k_l0");
    ggml_tensor* cache_v = new_cache("cache_v_l0");
    ggml_tensor* k = turn(context, ggml_mul(context, keys, norm), positions);
    ggml_tensor* q = turn(context, ggml_mul(context, queries, norm), positions);
    const auto rows = [&](ggml_tensor* vectors) {
      return ggml_reshape_2d(context, vectors, kDim * kKvHeads, kTokens);
    };
    graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, ggml_set_rows(context, cache_k, rows(k), cells));
    ggml_build_forward_expand(graph, ggml_set_rows(context, cache_v, rows(keys), cells));
    attention = ggml_flash_attn_ext(context, ggml_permute(context, q, 0, 2, 1, 3),
                                    heads_of(cache_k), heads_of(cache_v), mask, 0.25F, 0, 0);
    ggml_build_forward_expand(graph, attention);
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    backend_.reset(ggml_backend_dev_init(cpu, nullptr));
    use_known_threads(backend_.get());
    buffer_.reset(ggml_backend_alloc_ctx_tensors(context, backend_.get()));
    ggml_backend_buffer_clear(buffer_.get(), 0);
    set(norm, std::vector<float>(kDim, 1));
    std::vector<std::int64_t> cell_idx(kTokens);
    std::iota(cell_idx.begin(), cell_idx.end(), 0);
    set(cells, cell_idx);
    place(1000);
    fill(1);
  }

  // Sets the positions of the tokens: `first` and those after it.
  void place(std::int32_t first) {
    std::vector<std::int32_t> pos(static_cast<std::size_t>(positions->ne[0]));
    for (std::size_t i = 0; i < pos.size(); ++i) pos[i] = first + static_cast<int>(i % kTokens);
    set(positions, pos);
  }

  void fill(unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(1);
    for (ggml_tensor* tensor : {queries, keys}) {
      std::vector<float> numbers(static_cast<std::size_t>(ggml_nelements(tensor)));
      for (float& number : numbers) number = normal(random);
      set(tensor, numbers);
    }
  }

  // Computes the graph and returns the result of attention.
  std::vector<float> compute(std::shared_ptr<FitRun> fit_run = nullptr) {
    ShadowGraph shadow;
    const Result<ggml_cgraph*> built = shadow.build(graph, {.fit_run = std::move(fit_run)});
    EXPECT_TRUE(built.has_value());
    EXPECT_EQ(ggml_backend_graph_compute(backend_.get(), *built), GGML_STATUS_SUCCESS);
    std::vector<float> result(static_cast<std::size_t>(ggml_nelements(attention)));
    ggml_backend_tensor_get(attention, result.data(), 0, ggml_nbytes(attention));
    return result;
  }

  ggml_backend_t backend() { return backend_.get(); }

  template <class Number>
  static void set(ggml_tensor* tensor, const std::vector<Number>& numbers) {
    ggml_backend_tensor_set(tensor, numbers.data(), 0, ggml_nbytes(tensor));
  }

  ggml_tensor* norm;
  ggml_tensor* queries;
  ggml_tensor* keys;
  ggml_tensor* positions;
  ggml_tensor* attention;
  ggml_cgraph* graph;

 private:
  ggml_tensor* new_cache(const char* name) {
    ggml_tensor* cache =
        ggml_new_tensor_2d(context_.get(), GGML_TYPE_F16, kDim * kKvHeads, kTokens);
    ggml_set_name(cache, name);
    cache_buffers_.emplace_back(ggml_backend_buft_alloc_buffer(type_.handle(), ggml_nbytes(cache)));
    cache->buffer = cache_buffers_.back().get();
    cache->data = ggml_backend_buffer_get_base(cache->buffer);
    return cache;
  }

  ggml_tensor* heads_of(ggml_tensor* cache) {
    const std::size_t head_bytes = kDim * sizeof(ggml_fp16_t);
    ggml_tensor* heads =
        ggml_view_3d(context_.get(), cache, kDim, kKvHeads, kTokens, head_bytes, cache->nb[1], 0);
    return ggml_permute(context_.get(), heads, 0, 2, 1, 3);
  }

  KvBufferType type_;
  ggml_context_ptr context_;
  ggml_backend_ptr backend_;
  ggml_backend_buffer_ptr buffer_;
  std::vector<ggml_backend_buffer_ptr> cache_buffers_;
};

// RoPE whose first pair turns once in six tokens, and whose last pair never does.
inline SmallGraph::Turn rope(int mode) {
  return [mode](ggml_context* context, ggml_tensor* vectors, ggml_tensor* positions) {
    return ggml_rope_ext(context, vectors, positions, nullptr, SmallGraph::kDim, mode, 0, 1e12F, 1,
                         0, 1, 0, 0);
  };
}

}  // namespace slipstream::turbo
