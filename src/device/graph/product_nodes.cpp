#include "device/graph/product_nodes.h"

#include <ggml-backend.h>

#include <algorithm>
#include <functional>

#include "device/log.h"

namespace slipstream::turbo {
namespace {

// With fewer columns dot products are faster.
constexpr std::int64_t kManyColumns = 32;
// The same for the columns that an expert has on average.
constexpr std::int64_t kManyExpertColumns = 8;

// The buffer of a weight; null if the tensor is none.
ggml_backend_buffer_t weights_buffer(const ggml_tensor* tensor) {
  ggml_backend_buffer_t buffer =
      tensor->view_src != nullptr ? tensor->view_src->buffer : tensor->buffer;
  const bool is_weight = buffer != nullptr &&
                         ggml_backend_buffer_get_usage(buffer) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
  return is_weight ? buffer : nullptr;
}

// Whether rows of weights lie one behind the other, in the file's own layout. Stock's other layouts
// are in buffers that are not the host's.
bool are_plain_weights(const ggml_tensor* tensor) {
  ggml_backend_buffer_t buffer = weights_buffer(tensor);
  return buffer != nullptr && ggml_backend_buffer_is_host(buffer) && tensor->ne[3] == 1 &&
         tensor->nb[0] == ggml_type_size(tensor->type) &&
         tensor->nb[1] >= ggml_row_size(tensor->type, tensor->ne[0]);
}

// AMX would round weights in f32 to bf16, so that they stay stock's.
bool can_multiply_type(ggml_type type) { return type != GGML_TYPE_F32 && can_multiply(type); }

bool are_floats(const ggml_tensor* tensor) {
  return tensor->type == GGML_TYPE_F32 && tensor->nb[0] == sizeof(float) &&
         tensor->nb[1] % sizeof(float) == 0 && tensor->nb[2] % sizeof(float) == 0;
}

// Whether columns are the same distance apart, over all dimensions.
bool are_even_columns(const ggml_tensor* tensor) {
  const auto extent = [&](int dimension) {
    return tensor->nb[dimension] * static_cast<std::size_t>(tensor->ne[dimension]);
  };
  return are_floats(tensor) && (tensor->ne[2] == 1 || tensor->nb[2] == extent(1)) &&
         (tensor->ne[3] == 1 || tensor->nb[3] == extent(2));
}

bool overlap(const ggml_tensor* a, const ggml_tensor* b) {
  const auto* first = static_cast<const std::byte*>(a->data);
  const auto* second = static_cast<const std::byte*>(b->data);
  return std::less()(first, second + ggml_nbytes(b)) && std::less()(second, first + ggml_nbytes(a));
}

std::size_t floats(std::size_t n_bytes) { return n_bytes / sizeof(float); }

// MUL_MAT_ID: [row][rank][token], with the experts that tokens chose in src[2]: [rank][token].
std::int64_t n_uses(const ggml_tensor* product) { return ggml_nelements(product->src[2]); }

ExpertChoices choices_of(const ggml_tensor* product) {
  const ggml_tensor* columns = product->src[1];
  const ggml_tensor* choices = product->src[2];
  return {.experts = static_cast<const std::byte*>(choices->data),
          .token_bytes = choices->nb[1],
          .n_ranks = choices->ne[0],
          .n_tokens = choices->ne[1],
          .n_experts = product->src[0]->ne[2],
          .columns = static_cast<const float*>(columns->data),
          .column_token_stride = floats(columns->nb[2]),
          .column_rank_stride = columns->ne[1] == 1 ? 0 : floats(columns->nb[1]),
          .n_inner = columns->ne[0]};
}

ExpertProduct experts_of(const ggml_tensor* product) {
  const ggml_tensor* weights = product->src[0];
  return {.type = weights->type,
          .weights = static_cast<const std::byte*>(weights->data),
          .row_bytes = weights->nb[1],
          .expert_bytes = weights->nb[2],
          .n_rows = weights->ne[1],
          .n_inner = weights->ne[0],
          .result = static_cast<float*>(product->data),
          .result_token_stride = floats(product->nb[2]),
          .result_rank_stride = floats(product->nb[1])};
}

// The memory for packed columns.
std::size_t packed_bytes(const ggml_tensor* product, ProductKind kind) {
  const ggml_tensor* weights = product->src[0];
  switch (kind) {
    case ProductKind::kStock: return 0;
    case ProductKind::kFew: return n_dot_bytes(weights->ne[0], ggml_nrows(product->src[1]));
    case ProductKind::kMany: return n_packed_bytes(weights->ne[0], ggml_nrows(product->src[1]));
    case ProductKind::kExpertsFew:
      return ExpertDotColumns::n_bytes(weights->ne[0], n_uses(product));
    case ProductKind::kExpertsMany:
      return ExpertColumns::n_bytes(weights->type, weights->ne[0], n_uses(product), weights->ne[2]);
  }
  return 0;
}

// Dot products pack columns for all types alike.
bool is_few(ProductKind kind) {
  return kind == ProductKind::kFew || kind == ProductKind::kExpertsFew;
}

}  // namespace

ProductKind expert_product_kind(const ggml_tensor* node, std::int64_t n_uses,
                                std::int64_t n_experts) {
  const ggml_tensor* columns = node->src[1];
  const ggml_tensor* choices = node->src[2];
  const bool has_column_each = columns->ne[1] == 1 || columns->ne[1] == choices->ne[0];
  if (!can_multiply_type(node->src[0]->type) || !are_floats(columns) || columns->ne[3] != 1 ||
      !has_column_each || !are_floats(node) || choices->type != GGML_TYPE_I32 ||
      choices->nb[0] != sizeof(std::int32_t)) {
    return ProductKind::kStock;
  }
  if (n_uses >= kManyExpertColumns * n_experts) return ProductKind::kExpertsMany;
  return can_dot(node->src[0]->type) ? ProductKind::kExpertsFew : ProductKind::kStock;
}

ProductKind product_kind(const ggml_tensor* node) {
  const bool has_experts = node->op == GGML_OP_MUL_MAT_ID;
  if (!has_experts && node->op != GGML_OP_MUL_MAT) return ProductKind::kStock;
  const ggml_tensor* weights = node->src[0];
  if (!are_plain_weights(weights)) return ProductKind::kStock;
  if (has_experts) return expert_product_kind(node, n_uses(node), weights->ne[2]);
  if (weights->ne[2] != 1 || !can_multiply_type(weights->type) || !are_even_columns(node->src[1]) ||
      !are_even_columns(node)) {
    return ProductKind::kStock;
  }
  if (ggml_nrows(node->src[1]) >= kManyColumns) return ProductKind::kMany;
  return can_dot(weights->type) ? ProductKind::kFew : ProductKind::kStock;
}

void ProductNodes::clear() {
  n_products_ = 0;
  few_.clear();
  many_.clear();
  few_of_experts_.clear();
  few_columns_of_experts_.clear();
  many_of_experts_.clear();
  many_columns_of_experts_.clear();
  packed_.reset();
}

void ProductNodes::plan(ggml_cgraph* graph) {
  clear();
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    const ggml_tensor* node = ggml_graph_node(graph, i);
    make_room(node, product_kind(node));
    if (node->op == GGML_OP_MUL_MAT) advise(node->src[0]);
  }
}

void ProductNodes::advise(const ggml_tensor* weights) {
  ggml_backend_buffer_t buffer = weights_buffer(weights);
  if (has_advised_ || buffer == nullptr || ggml_backend_buffer_is_host(buffer)) return;
  has_advised_ = true;
  log_line(
      GGML_LOG_LEVEL_WARN,
      format_text("weights are in stock's layout {}, which our own products cannot read: start "
                  "with --no-repack",
                  ggml_backend_buffer_name(buffer)));
}

void ProductNodes::make_room(const ggml_tensor* product, ProductKind kind) {
  if (kind == ProductKind::kStock) return;
  ++n_products_;
  memory_.resize(packed_bytes(product, kind));  // never shrinks
}

const std::vector<ProductNodes::Step>& ProductNodes::add(const ggml_tensor* product,
                                                         ProductKind kind) {
  const Packed wanted{.kind = kind,
                      .type = product->src[0]->type,
                      .columns = product->src[1],
                      .choices = product->src[2]};
  const bool is_packed = packed_ && packed_->kind == kind && packed_->columns == wanted.columns &&
                         packed_->choices == wanted.choices &&
                         (is_few(kind) || pack_alike(packed_->type, wanted.type));
  steps_.clear();
  switch (kind) {
    case ProductKind::kStock: return steps_;  // not ours
    case ProductKind::kFew: add_columns(few_, product, is_packed); break;
    case ProductKind::kMany: add_columns(many_, product, is_packed); break;
    case ProductKind::kExpertsFew: add_few_of_experts(product, is_packed); break;
    case ProductKind::kExpertsMany: add_many_of_experts(product, is_packed); break;
  }
  packed_ = wanted;
  pass(product);
  return steps_;
}

template <class Task>
void ProductNodes::add_columns(std::deque<Task>& tasks, const ggml_tensor* product,
                               bool is_packed) {
  const ggml_tensor* weights = product->src[0];
  const ggml_tensor* columns = product->src[1];
  tasks.emplace_back(Product{.type = weights->type,
                             .weights = static_cast<const std::byte*>(weights->data),
                             .row_bytes = weights->nb[1],
                             .n_rows = weights->ne[1],
                             .n_inner = weights->ne[0],
                             .columns = static_cast<const float*>(columns->data),
                             .column_stride = floats(columns->nb[1]),
                             .n_columns = ggml_nrows(columns),
                             .result = static_cast<float*>(product->data),
                             .result_stride = floats(product->nb[1])},
                     memory_.data());
  if (!is_packed) {
    steps_.push_back(
        {.run = [](int thread_idx, int n_threads,
                   void* task) { static_cast<Task*>(task)->pack_columns(thread_idx, n_threads); },
         .task = &tasks.back()});
  }
  steps_.push_back({.run = [](int /*thread_idx*/, int n_threads,
                              void* task) { static_cast<Task*>(task)->multiply(n_threads); },
                    .task = &tasks.back()});
}

void ProductNodes::add_few_of_experts(const ggml_tensor* product, bool is_packed) {
  if (!is_packed) {
    few_columns_of_experts_.emplace_back(choices_of(product), memory_.data());
    steps_.push_back({.run =
                          [](int thread_idx, int n_threads, void* columns) {
                            static_cast<ExpertDotColumns*>(columns)->pack(thread_idx, n_threads);
                          },
                      .task = &few_columns_of_experts_.back()});
  }
  few_of_experts_.emplace_back(experts_of(product), few_columns_of_experts_.back());
  steps_.push_back({.run = [](int /*thread_idx*/, int /*n_threads*/,
                              void* task) { static_cast<ExpertDotTask*>(task)->multiply(); },
                    .task = &few_of_experts_.back()});
}

void ProductNodes::add_many_of_experts(const ggml_tensor* product, bool is_packed) {
  if (!is_packed) {
    many_columns_of_experts_.emplace_back(choices_of(product), product->src[0]->type,
                                          memory_.data());
    steps_.push_back({.run =
                          [](int thread_idx, int /*n_threads*/, void* columns) {
                            if (thread_idx == 0) static_cast<ExpertColumns*>(columns)->gather();
                          },
                      .task = &many_columns_of_experts_.back()});
    steps_.push_back({.run =
                          [](int thread_idx, int n_threads, void* columns) {
                            static_cast<ExpertColumns*>(columns)->pack(thread_idx, n_threads);
                          },
                      .task = &many_columns_of_experts_.back()});
  }
  many_of_experts_.emplace_back(experts_of(product), many_columns_of_experts_.back());
  steps_.push_back({.run = [](int /*thread_idx*/, int /*n_threads*/,
                              void* task) { static_cast<ExpertProductTask*>(task)->multiply(); },
                    .task = &many_of_experts_.back()});
}

void ProductNodes::pass(const ggml_tensor* node) {
  if (packed_ && (overlap(node, packed_->columns) ||
                  (packed_->choices != nullptr && overlap(node, packed_->choices)))) {
    packed_.reset();
  }
}

}  // namespace slipstream::turbo
