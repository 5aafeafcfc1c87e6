#include "device/experts/expert_graph.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <numeric>

#include "base/format.h"
#include "device/log.h"

namespace slipstream::turbo {
namespace {

// Experts are read ahead only for generation: a long prompt needs nearly every expert anyway.
constexpr std::int64_t kLookaheadTokensMax = 8;

bool is_ours(const ggml_tensor* node) {
  return node->op == GGML_OP_MUL_MAT_ID && is_streamed(node->src[0]);
}

// The layer, 17, of "blk.17.ffn_gate_inp.weight"; -1 if the tensor is not a router's.
int layer_of_router(const ggml_tensor* weights) {
  std::string_view name = weights->name;
  if (!name.starts_with("blk.") || !name.ends_with(".ffn_gate_inp.weight")) return -1;
  name.remove_prefix(4);
  int layer = -1;
  std::from_chars(name.data(), name.data() + name.size(), layer);
  return layer;
}

std::int32_t id_at(const ggml_tensor* ids, std::int64_t rank, std::int64_t token) {
  std::int32_t id = 0;
  std::memcpy(&id,
              static_cast<const char*>(ids->data) + static_cast<std::size_t>(token) * ids->nb[1] +
                  static_cast<std::size_t>(rank) * ids->nb[0],
              sizeof(id));
  return id;
}

ggml_context_ptr make_context(std::size_t n_tensors, std::size_t n_nodes) {
  return ggml_context_ptr(ggml_init(
      {.mem_size = n_tensors * ggml_tensor_overhead() + ggml_graph_overhead_custom(n_nodes, false),
       .mem_buffer = nullptr,
       .no_alloc = true}));
}

ggml_status compute_nodes(ggml_backend_t cpu, std::span<ggml_tensor* const> nodes) {
  const ggml_context_ptr context = make_context(0, nodes.size());
  if (!context) return GGML_STATUS_ALLOC_FAILED;
  ggml_cgraph* graph = ggml_new_graph_custom(context.get(), nodes.size(), false);
  for (ggml_tensor* node : nodes) ggml_graph_add_node(graph, node);
  return ggml_backend_graph_compute(cpu, graph);
}

// The slots of a matrix as a tensor of experts. The stock kernel steps between them by nb[2].
ggml_tensor* new_slots_tensor(ggml_context* context, const ggml_tensor* weights,
                              ExpertMatrix& matrix, int n_slots) {
  ggml_tensor* slots =
      ggml_new_tensor_3d(context, weights->type, weights->ne[0], weights->ne[1], n_slots);
  slots->nb[2] = matrix.slot_bytes();
  slots->nb[3] = slots->nb[2] * static_cast<std::size_t>(n_slots);
  slots->data = matrix.arena.bytes().data() + matrix.start_in_slot();
  return slots;
}

ggml_status report(const Error& error) {
  log_line(GGML_LOG_LEVEL_ERROR, error.message);
  return GGML_STATUS_FAILED;
}

}  // namespace

bool ExpertGraph::concerns(ggml_cgraph* graph) {
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    if (is_ours(ggml_graph_node(graph, i))) return true;
  }
  return false;
}

ggml_status ExpertGraph::compute(ggml_backend_t cpu, ggml_cgraph* graph, bool has_products) {
  cpu_ = cpu;
  has_products_ = has_products;
  custom_nodes_.clear();
  product_nodes_.clear();
  part_.clear();
  routers_.clear();
  chosen_for_ = nullptr;
  chosen_layer_ = nullptr;
  std::size_t n_ours = 0;
  ExpertStore* store = nullptr;
  std::int64_t n_tokens = 0;
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    const ggml_tensor* node = ggml_graph_node(graph, i);
    if (is_ours(node)) {
      ++n_ours;
      store = &store_of(node->src[0]);
      n_tokens = node->ne[2];
      // Slots are fewer than experts, or as many.
      for (const ProductKind kind : {ProductKind::kExpertsFew, ProductKind::kExpertsMany}) {
        if (has_products_) product_nodes_.make_room(node, kind);
      }
    } else if (node->op == GGML_OP_MUL_MAT) {
      if (const int layer = layer_of_router(node->src[0]); layer >= 0) {
        routers_[layer] = node->src[0];
      }
    }
  }
  // Each multiplication with experts needs three tensors: its copy, the slots and their numbers; and
  // one for each step of a product. Two are spare.
  context_ = make_context((5 + ProductNodes::kStepsMax) * n_ours, 0);
  if (!context_) return GGML_STATUS_ALLOC_FAILED;

  const std::unique_lock held = store->lock();
  const auto started = std::chrono::steady_clock::now();
  if (const Result<void> prepared = store->prepare(); !prepared) return report(prepared.error());
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    ggml_tensor* node = ggml_graph_node(graph, i);
    if (!is_ours(node)) {
      part_.push_back(node);
      continue;
    }
    const auto [layer, matrix] = store->find(node->src[0]);
    if (layer == nullptr || &store_of(node->src[0]) != store) {
      return report({Code::kUnsupported, format_text("experts of {} are not known", node->name)});
    }
    if (chosen_for_ != node->src[2] || chosen_layer_ != layer) {
      if (const ggml_status status = compute_part(); status != GGML_STATUS_SUCCESS) return status;
      if (const Result<void> chosen = choose(node, *layer, *store); !chosen) {
        return report(chosen.error());
      }
      look_ahead(node, layer->layer() + 1, *store);
    }
    if (const ggml_status status = multiply(node, *layer, *matrix, *store);
        status != GGML_STATUS_SUCCESS) {
      return status;
    }
  }
  ggml_status status = compute_part();
  if (custom_nodes_.status() != GGML_STATUS_SUCCESS) status = custom_nodes_.status();
  store->publish_counters();
  if (n_tokens <= kLookaheadTokensMax) {
    trial_.observe(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count() /
        static_cast<double>(n_tokens));
  }
  return status;
}

ggml_status ExpertGraph::compute_part() {
  if (part_.empty()) return GGML_STATUS_SUCCESS;
  const ggml_status status = compute_nodes(cpu_, part_);
  part_.clear();
  return status;
}

// Called when the router has chosen: finds slots for the experts and, if all fit, reads them.
Result<void> ExpertGraph::choose(const ggml_tensor* multiplication, ExpertLayer& layer,
                                 ExpertStore& store) {
  const ggml_tensor* ids = multiplication->src[2];
  choices_.clear();
  for (std::int64_t token = 0; token < ids->ne[1]; ++token) {
    for (std::int64_t rank = 0; rank < ids->ne[0]; ++rank) {
      const std::int32_t expert = id_at(ids, rank, token);
      if (expert < 0 || expert >= layer.n_experts()) {
        return fail(Code::kCorrupt, format_text("layer {} has {} experts, and its router chose {}",
                                                layer.layer(), layer.n_experts(), expert));
      }
      choices_.push_back(expert);
    }
  }
  needed_.assign(choices_.begin(), choices_.end());
  std::ranges::sort(needed_);
  needed_.erase(std::ranges::unique(needed_).begin(), needed_.end());

  chosen_for_ = ids;
  chosen_layer_ = &layer;
  const std::vector<Turn>& turns = layer.plan(needed_, store.reader());
  if (turns.size() > 1) return {};
  if (Result<void> read = layer.read_all(turns.front(), store.reader()); !read) {
    chosen_for_ = nullptr;
    return read;
  }
  slot_ids_.resize(choices_.size());
  std::ranges::transform(choices_, slot_ids_.begin(),
                         [&](std::int32_t expert) { return layer.slots().slot_of(expert); });
  slot_ids_tensor_ = ggml_new_tensor_2d(context_.get(), GGML_TYPE_I32, ids->ne[0], ids->ne[1]);
  slot_ids_tensor_->data = slot_ids_.data();
  return {};
}

ggml_status ExpertGraph::multiply(ggml_tensor* multiplication, ExpertLayer& layer,
                                  ExpertMatrix& matrix, ExpertStore& store) {
  const std::vector<Turn>& turns = layer.current_plan();
  if (turns.size() == 1) {
    add_in_slots(multiplication, matrix, layer);
    return GGML_STATUS_SUCCESS;
  }
  // The input of the multiplication has to be computed before the turns begin.
  if (const ggml_status status = compute_part(); status != GGML_STATUS_SUCCESS) return status;
  SlabReader::Ticket ticket = layer.start_reads(turns[0], matrix, store.reader());
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const Result<void> read = layer.finish_reads(turns[i], matrix, ticket, store.reader());
    // The next turn is read into other slots than those of this turn.
    const bool has_next = i + 1 < turns.size();
    if (has_next) ticket = layer.start_reads(turns[i + 1], matrix, store.reader());
    ggml_status status = read ? GGML_STATUS_SUCCESS : report(read.error());
    if (status == GGML_STATUS_SUCCESS && !turns[i].empty()) {
      status = multiply_turn(multiplication, matrix, layer, turns[i]);
    }
    if (status == GGML_STATUS_SUCCESS) continue;
    if (has_next) {
      const Result<void> rest = layer.finish_reads(turns[i + 1], matrix, ticket, store.reader());
      if (!rest) status = report(rest.error());
    }
    chosen_for_ = nullptr;
    return status;
  }
  layer.finish_matrix();
  return GGML_STATUS_SUCCESS;
}

void ExpertGraph::add_in_slots(ggml_tensor* multiplication, ExpertMatrix& matrix,
                               const ExpertLayer& layer) {
  ggml_tensor* copy = ggml_new_tensor_1d(context_.get(), GGML_TYPE_F32, 1);
  *copy = *multiplication;
  copy->src[0] = new_slots_tensor(context_.get(), multiplication->src[0], matrix, layer.n_slots());
  copy->src[2] = slot_ids_tensor_;
  add_product(copy, kind_of(multiplication, layer), context_.get(), part_);
}

// What the whole batch is, so that the size of the cache changes nothing.
ProductKind ExpertGraph::kind_of(const ggml_tensor* multiplication,
                                 const ExpertLayer& layer) const {
  if (!has_products_) return ProductKind::kStock;
  return expert_product_kind(multiplication, static_cast<std::int64_t>(choices_.size()),
                             layer.n_experts());
}

void ExpertGraph::add_product(ggml_tensor* product, ProductKind kind, ggml_context* context,
                              std::vector<ggml_tensor*>& nodes) {
  if (kind == ProductKind::kStock) {
    nodes.push_back(product);
    return;
  }
  for (const auto& [run, task] : product_nodes_.add(product, kind)) {
    nodes.push_back(custom_nodes_.make(context, product, run, task));
  }
}

ggml_status ExpertGraph::multiply_turn(const ggml_tensor* multiplication, ExpertMatrix& matrix,
                                       const ExpertLayer& layer, const Turn& turn) {
  const ggml_tensor* rows = multiplication->src[1];
  const std::int64_t n_ranks = multiplication->src[2]->ne[0];
  // Finds the batch's choices that belong to this turn, and their slots.
  std::map<std::int32_t, std::int32_t> slots;
  for (const Placement& placement : turn) slots[placement.expert] = placement.slot;
  std::vector<std::size_t> mine;
  slot_ids_.clear();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const auto slot = slots.find(choices_[i]);
    if (slot == slots.end()) continue;
    mine.push_back(i);
    slot_ids_.push_back(slot->second);
  }
  const std::size_t row_bytes = ggml_row_size(rows->type, rows->ne[0]);
  gathered_.resize(mine.size() * row_bytes);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const auto token = static_cast<std::int64_t>(mine[i]) / n_ranks;
    const auto rank = static_cast<std::int64_t>(mine[i]) % n_ranks;
    std::memcpy(gathered_.data() + i * row_bytes,
                static_cast<const char*>(rows->data) +
                    static_cast<std::size_t>(token) * rows->nb[2] +
                    static_cast<std::size_t>(rank % rows->ne[1]) * rows->nb[1],
                row_bytes);
  }
  const auto n_mine = static_cast<std::int64_t>(mine.size());
  const ggml_context_ptr context = make_context(4 + ProductNodes::kStepsMax, 0);
  if (!context) return GGML_STATUS_ALLOC_FAILED;
  ggml_tensor* input = ggml_new_tensor_3d(context.get(), rows->type, rows->ne[0], 1, n_mine);
  input->data = gathered_.data();
  ggml_tensor* ids = ggml_new_tensor_2d(context.get(), GGML_TYPE_I32, 1, n_mine);
  ids->data = slot_ids_.data();
  ggml_tensor* experts =
      new_slots_tensor(context.get(), multiplication->src[0], matrix, layer.n_slots());
  ggml_tensor* product = ggml_mul_mat_id(context.get(), experts, input, ids);
  products_.resize(static_cast<std::size_t>(ggml_nelements(product)));
  product->data = products_.data();
  product->flags |= GGML_TENSOR_FLAG_COMPUTE;
  std::vector<ggml_tensor*> nodes;
  add_product(product, kind_of(multiplication, layer), context.get(), nodes);
  const ggml_status status = compute_nodes(cpu_, nodes);
  product_nodes_.pass(input);  // its memory is used again in the next turn
  if (status != GGML_STATUS_SUCCESS) return status;
  const auto n_outputs = static_cast<std::size_t>(multiplication->ne[0]);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const std::size_t token = mine[i] / static_cast<std::size_t>(n_ranks);
    const std::size_t rank = mine[i] % static_cast<std::size_t>(n_ranks);
    std::memcpy(static_cast<char*>(multiplication->data) + token * multiplication->nb[2] +
                    rank * multiplication->nb[1],
                products_.data() + i * n_outputs, n_outputs * sizeof(float));
  }
  return GGML_STATUS_SUCCESS;
}

// Computes the next layer's router on the input of this layer's experts.
void ExpertGraph::look_ahead(const ggml_tensor* multiplication, int layer, ExpertStore& store) {
  if (!store.options().looks_ahead || !trial_.looks_ahead()) return;
  ExpertLayer* next = store.find_layer(layer);
  const auto router = routers_.find(layer);
  const ggml_tensor* input = multiplication->src[1];
  if (next == nullptr || router == routers_.end() || input->ne[1] != 1 ||
      input->ne[2] > kLookaheadTokensMax || input->type != GGML_TYPE_F32 ||
      router->second->ne[0] != input->ne[0] || router->second->ne[1] != next->n_experts()) {
    return;
  }
  const std::int64_t n_tokens = input->ne[2];
  const ggml_context_ptr context = make_context(2, 0);
  if (!context) return;
  ggml_tensor* hidden = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, input->ne[0], n_tokens);
  hidden->data = input->data;
  hidden->nb[1] = input->nb[2];
  ggml_tensor* logits = ggml_mul_mat(context.get(), router->second, hidden);
  products_.resize(static_cast<std::size_t>(ggml_nelements(logits)));
  logits->data = products_.data();
  logits->flags |= GGML_TENSOR_FLAG_COMPUTE;
  if (compute_nodes(cpu_, std::span(&logits, 1)) != GGML_STATUS_SUCCESS) return;

  const auto n_chosen = static_cast<std::size_t>(multiplication->src[2]->ne[0]);
  next->guess(likely_experts(products_, static_cast<std::size_t>(next->n_experts()), n_chosen),
              store.reader());
}

std::vector<int> likely_experts(std::span<const float> logits, std::size_t n_experts,
                                std::size_t n_chosen) {
  n_chosen = std::min(n_chosen, n_experts);
  std::vector<int> order(n_experts);
  std::vector<int> likely;
  for (; logits.size() >= n_experts; logits = logits.subspan(n_experts)) {
    std::iota(order.begin(), order.end(), 0);
    const auto is_likelier = [&](int left, int right) {
      return logits[static_cast<std::size_t>(left)] > logits[static_cast<std::size_t>(right)];
    };
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(n_chosen);
    std::ranges::partial_sort(order, end, is_likelier);
    for (const int expert : std::span(order.begin(), end)) {
      if (std::ranges::find(likely, expert) == likely.end()) likely.push_back(expert);
    }
  }
  return likely;
}

}  // namespace slipstream::turbo
