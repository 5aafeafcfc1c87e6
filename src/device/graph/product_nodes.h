// ProductNodes: which products of a graph our own kernels compute, and their memory.
//
// A product is ours if its weights lie as they are in the model's file and our kernels are faster
// than stock's on such weights (docs/products.md). Products that follow each other and multiply the
// same columns, such as those for queries, keys and values, share what was packed of them.
//
// Threads: owned by one backend; the steps run on ggml's threads. Errors: std::bad_alloc.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "device/attention/scratch.h"
#include "device/products/expert_dots.h"
#include "device/products/expert_product.h"
#include "device/products/few_columns.h"
#include "device/products/product.h"

namespace slipstream::turbo {

class ProductNodes {
 public:
  // All threads run a step before the next one begins.
  struct Step {
    void (*run)(int thread_idx, int n_threads, void* task);
    void* task;
  };
  static constexpr std::size_t kStepsMax = 3;

  // Makes room for the products of a graph. Not enabled: none is ours.
  void plan(ggml_cgraph* graph, bool is_enabled);
  [[nodiscard]] std::size_t n_products() const { return n_products_; }

  [[nodiscard]] bool is_ours(const ggml_tensor* node) const;
  // The steps that compute the product, valid until the next call.
  // REQUIRES: is_ours(product). Products are added in the graph's order.
  [[nodiscard]] const std::vector<Step>& add(const ggml_tensor* product);
  // A node that is not one of our products was added: it may overwrite columns that are packed.
  void pass(const ggml_tensor* node);

 private:
  enum class Kind { kStock, kFew, kMany, kExpertsFew, kExpertsMany };
  // What is packed.
  struct Packed {
    Kind kind;
    ggml_type type;  // of weights
    const ggml_tensor* columns;
    const ggml_tensor* choices;  // of experts; null without them
  };

  [[nodiscard]] static Kind kind_of(const ggml_tensor* node);
  [[nodiscard]] static bool is_few(Kind kind);
  [[nodiscard]] static std::size_t n_bytes(const ggml_tensor* product);
  template <class Task>
  void add_columns(std::deque<Task>& tasks, const ggml_tensor* product, bool is_packed);
  void add_few_of_experts(const ggml_tensor* product, bool is_packed);
  void add_many_of_experts(const ggml_tensor* product, bool is_packed);

  bool is_enabled_ = false;
  std::size_t n_products_ = 0;
  // Deques, because tasks must keep their addresses.
  std::deque<DotTask> few_;
  std::deque<ProductTask> many_;
  std::deque<ExpertDotColumns> few_columns_of_experts_;
  std::deque<ExpertDotTask> few_of_experts_;
  std::deque<ExpertColumns> many_columns_of_experts_;
  std::deque<ExpertProductTask> many_of_experts_;
  Scratch<std::byte> memory_;
  std::optional<Packed> packed_;
  std::vector<Step> steps_;
};

}  // namespace slipstream::turbo
