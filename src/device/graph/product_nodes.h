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
#include "device/graph/custom_nodes.h"
#include "device/products/expert_dots.h"
#include "device/products/expert_product.h"
#include "device/products/few_columns.h"
#include "device/products/product.h"

namespace slipstream::turbo {

// How a product is computed.
enum class ProductKind { kStock, kFew, kMany, kExpertsFew, kExpertsMany };

// MUL_MAT and MUL_MAT_ID of weights that lie as they are in the file. Anything else is stock's.
[[nodiscard]] ProductKind product_kind(const ggml_tensor* node);
// MUL_MAT_ID of weights wherever they are, if a batch uses experts n_uses times.
[[nodiscard]] ProductKind expert_product_kind(const ggml_tensor* node, std::int64_t n_uses,
                                              std::int64_t n_experts);

class ProductNodes {
 public:
  // All threads run a step before the next one begins.
  struct Step {
    NodeFunction run;
    void* task;
  };
  static constexpr std::size_t kStepsMax = 3;

  // Forgets all products, and makes room for those of a graph.
  void plan(ggml_cgraph* graph);
  void clear();
  // Makes room for one more. Called before the first add().
  void make_room(const ggml_tensor* product, ProductKind kind);
  [[nodiscard]] std::size_t n_products() const { return n_products_; }

  // The steps that compute the product, valid until the next call.
  // REQUIRES: kind is not kStock; there is room. Products are added in the order of computation.
  [[nodiscard]] const std::vector<Step>& add(const ggml_tensor* product, ProductKind kind);
  // Another node was added: it may overwrite columns that are packed.
  void pass(const ggml_tensor* node);

 private:
  // What is packed.
  struct Packed {
    ProductKind kind;
    ggml_type type;  // of weights
    const ggml_tensor* columns;
    const ggml_tensor* choices;  // of experts; null without them
  };

  // Says once that stock's own layouts are in the way.
  void advise(const ggml_tensor* weights);
  template <class Task>
  void add_columns(std::deque<Task>& tasks, const ggml_tensor* product, bool is_packed);
  void add_few_of_experts(const ggml_tensor* product, bool is_packed);
  void add_many_of_experts(const ggml_tensor* product, bool is_packed);

  bool has_advised_ = false;
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
