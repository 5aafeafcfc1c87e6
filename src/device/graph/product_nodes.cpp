#include "device/graph/product_nodes.h"

#include <ggml-backend.h>

#include <algorithm>
#include <functional>

namespace slipstream::turbo {
namespace {

// With fewer columns stock's kernels are faster.
constexpr std::int64_t kColumnsMin = 32;

// Whether rows of weights lie one behind the other, in the file's own layout. Stock's other layouts
// are in buffers that are not the host's.
bool are_plain_weights(const ggml_tensor* tensor) {
  ggml_backend_buffer_t buffer =
      tensor->view_src != nullptr ? tensor->view_src->buffer : tensor->buffer;
  return buffer != nullptr && ggml_backend_buffer_is_host(buffer) &&
         ggml_backend_buffer_get_usage(buffer) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS &&
         tensor->ne[2] == 1 && tensor->ne[3] == 1 &&
         tensor->nb[0] == ggml_type_size(tensor->type) &&
         tensor->nb[1] >= ggml_row_size(tensor->type, tensor->ne[0]);
}

// Whether columns of f32 are the same distance apart, over all dimensions.
bool are_even_columns(const ggml_tensor* tensor) {
  return tensor->type == GGML_TYPE_F32 && tensor->nb[0] == sizeof(float) &&
         tensor->nb[1] % sizeof(float) == 0 &&
         (tensor->ne[2] == 1 ||
          tensor->nb[2] == tensor->nb[1] * static_cast<std::size_t>(tensor->ne[1])) &&
         (tensor->ne[3] == 1 ||
          tensor->nb[3] == tensor->nb[2] * static_cast<std::size_t>(tensor->ne[2]));
}

bool overlap(const ggml_tensor* a, const ggml_tensor* b) {
  const auto* first = static_cast<const std::byte*>(a->data);
  const auto* second = static_cast<const std::byte*>(b->data);
  return std::less()(first, second + ggml_nbytes(b)) && std::less()(second, first + ggml_nbytes(a));
}

}  // namespace

void ProductNodes::plan(ggml_cgraph* graph, bool is_enabled) {
  is_enabled_ = is_enabled;
  n_products_ = 0;
  tasks_.clear();
  columns_ = nullptr;
  std::size_t n_bytes = 0;
  for (int i = 0; is_enabled && i < ggml_graph_n_nodes(graph); ++i) {
    const ggml_tensor* node = ggml_graph_node(graph, i);
    if (!is_ours(node)) continue;
    ++n_products_;
    n_bytes = std::max(n_bytes, n_packed_bytes(node->src[1]->ne[0], ggml_nrows(node->src[1])));
  }
  packed_.resize(n_bytes);
}

// Weights in f32 stay stock's: AMX would round them to bf16.
bool ProductNodes::is_ours(const ggml_tensor* node) const {
  return is_enabled_ && node->op == GGML_OP_MUL_MAT && ggml_nrows(node->src[1]) >= kColumnsMin &&
         node->src[0]->type != GGML_TYPE_F32 && can_multiply(node->src[0]->type) &&
         are_plain_weights(node->src[0]) && are_even_columns(node->src[1]) &&
         are_even_columns(node);
}

ProductNodes::Steps ProductNodes::add(const ggml_tensor* product) {
  const ggml_tensor* weights = product->src[0];
  const ggml_tensor* columns = product->src[1];
  tasks_.emplace_back(Product{.type = weights->type,
                              .weights = static_cast<const std::byte*>(weights->data),
                              .row_bytes = weights->nb[1],
                              .n_rows = weights->ne[1],
                              .n_inner = weights->ne[0],
                              .columns = static_cast<const float*>(columns->data),
                              .column_stride = columns->nb[1] / sizeof(float),
                              .n_columns = ggml_nrows(columns),
                              .result = static_cast<float*>(product->data),
                              .result_stride = product->nb[1] / sizeof(float)},
                      packed_.data());
  const bool has_columns = columns == columns_;
  columns_ = overlap(product, columns) ? nullptr : columns;
  return {.task = &tasks_.back(), .has_columns = has_columns};
}

void ProductNodes::pass(const ggml_tensor* node) {
  if (columns_ != nullptr && overlap(node, columns_)) columns_ = nullptr;
}

}  // namespace slipstream::turbo
