// ProductNodes: which products of a graph our own kernels compute, and their memory.
//
// A product is ours if it multiplies weights that lie as they are in the model's file with so many
// columns that our kernels are faster than stock's (docs/products.md). Products that follow each
// other and multiply the same columns, such as those for queries, keys and values, share what was
// packed of them.
//
// Threads: owned by one backend; the tasks run on ggml's threads. Errors: std::bad_alloc.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <deque>

#include "device/attention/scratch.h"
#include "device/products/product.h"

namespace slipstream::turbo {

class ProductNodes {
 public:
  // Makes room for the products of a graph. Not enabled: none is ours.
  void plan(ggml_cgraph* graph, bool is_enabled);
  [[nodiscard]] std::size_t n_products() const { return n_products_; }

  [[nodiscard]] bool is_ours(const ggml_tensor* node) const;
  struct Steps {
    ProductTask* task;
    bool has_columns;  // whether an earlier product has packed them
  };
  // REQUIRES: is_ours(product). Products are added in the graph's order.
  [[nodiscard]] Steps add(const ggml_tensor* product);
  // A node that is not one of our products was added: it may overwrite columns that are packed.
  void pass(const ggml_tensor* node);

 private:
  bool is_enabled_ = false;
  std::size_t n_products_ = 0;
  std::deque<ProductTask> tasks_;  // a deque, because tasks must keep their addresses
  Scratch<std::byte> packed_;
  const ggml_tensor* columns_ = nullptr;  // those that are packed
};

}  // namespace slipstream::turbo
