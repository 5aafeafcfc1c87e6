#include "device/fit/gather_nodes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/fit/vector_source.h"
#include "device/guard.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {
namespace {

constexpr std::uint64_t kPositions = 32768;
// Keys of the first tokens are left out: they are unlike all others and are kept in 8 bits anyway.
constexpr std::int32_t kFirstTokens = 64;

// A position from splitmix64, so that it is the same in every run.
std::int32_t draw_position(std::uint64_t idx) {
  std::uint64_t bits = (idx + 1) * 0x9E3779B97F4A7C15U;
  bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<std::int32_t>((bits ^ (bits >> 31U)) % kPositions);
}

bool is_first_token(const ggml_tensor* rope, std::int64_t token) {
  if (rope == nullptr) return false;
  return static_cast<const std::int32_t*>(rope->src[1]->data)[token] < kFirstTokens;
}

}  // namespace

void GatherNodes::plan(ggml_cgraph* graph, std::shared_ptr<FitRun> run) {
  tasks_.clear();
  before_.clear();
  layers_.clear();
  run_ = std::move(run);
  if (run_ == nullptr) return;
  const int n_nodes = ggml_graph_n_nodes(graph);
  for (int i = 0; i < n_nodes; ++i) {
    const ggml_tensor* node = ggml_graph_node(graph, i);
    if (node->op == GGML_OP_FLASH_ATTN_EXT && find_cache(node->src[1]) != nullptr) {
      plan_queries(node, *run_);
    }
  }
  for (int i = 0; i < n_nodes; ++i) {
    const ggml_tensor* node = ggml_graph_node(graph, i);
    if (node->op == GGML_OP_SET_ROWS && find_cache(node) != nullptr) plan_keys(node, *run_);
  }
  std::size_t n_turned = 1;
  for (const Task& task : tasks_) {
    if (task.rope == nullptr) continue;
    n_turned = std::max(n_turned, static_cast<std::size_t>(ggml_nelements(task.rope)));
  }
  turned_.resize(n_turned);
}

void GatherNodes::plan_queries(const ggml_tensor* attention, FitRun& run) {
  const int layer = find_cache(attention->src[1])->layer();
  KeyMoments* moments = run.layer(attention, layer);
  if (moments == nullptr) return;
  const ggml_tensor* queries = attention->src[0];
  VectorSource source = find_source(queries);
  const ggml_tensor* rope = source.rope;
  if (queries->type != GGML_TYPE_F32 || queries->ne[0] != moments->head_dim()) {
    source.obstacle = "its queries are not f32 vectors of the keys' size";
  } else if (rope != nullptr && (rope->type != GGML_TYPE_F32 || rope->ne[0] != queries->ne[0] ||
                                 rope->ne[1] != queries->ne[2] || rope->ne[3] != 1)) {
    source.obstacle = "RoPE turns other vectors than its queries";
  }
  if (!source.obstacle.empty()) return run.refuse(layer, source.obstacle);
  layers_[layer] = moments;
  tasks_.push_back({.moments = moments,
                    .is_keys = false,
                    .rope = rope,
                    .factor = source.factor,
                    .vectors = {.data = static_cast<const std::byte*>(queries->data),
                                .n_heads = queries->ne[2],
                                .n_tokens = queries->ne[1],
                                .n_streams = queries->ne[3],
                                .head_bytes = queries->nb[2],
                                .token_bytes = queries->nb[1],
                                .stream_bytes = queries->nb[3]},
                    .positions = {}});
  before_.emplace(rope != nullptr ? rope : attention, &tasks_.back());
}

void GatherNodes::plan_keys(const ggml_tensor* write, FitRun& run) {
  const CacheTensor* cache = find_cache(write);
  const auto layer = layers_.find(cache->layer());
  if (cache->side() != Side::kKey || layer == layers_.end()) return;
  KeyMoments* moments = layer->second;
  const ggml_tensor* keys = write->src[0];
  VectorSource source = find_source(keys);
  const ggml_tensor* rope = source.rope;
  const std::int64_t head_dim = moments->head_dim();
  const std::int64_t n_heads = moments->n_heads();
  if (keys->type != GGML_TYPE_F32 || keys->ne[0] != head_dim * n_heads || keys->ne[2] != 1 ||
      keys->ne[3] != 1) {
    source.obstacle = "its keys are not written as rows of f32";
  } else if (rope != nullptr && (rope->type != GGML_TYPE_F32 || rope->ne[0] != head_dim ||
                                 rope->ne[1] != n_heads || rope->ne[3] != 1)) {
    source.obstacle = "RoPE turns other vectors than its keys";
  }
  if (!source.obstacle.empty()) return run.refuse(cache->layer(), source.obstacle);
  tasks_.push_back({.moments = moments,
                    .is_keys = true,
                    .rope = rope,
                    .factor = source.factor,
                    .vectors = {.data = static_cast<const std::byte*>(keys->data),
                                .n_heads = n_heads,
                                .n_tokens = keys->ne[1],
                                .n_streams = 1,
                                .head_bytes = static_cast<std::size_t>(head_dim) * sizeof(float),
                                .token_bytes = keys->nb[1],
                                .stream_bytes = 0},
                    .positions = {}});
  before_.emplace(rope != nullptr ? rope : write, &tasks_.back());
}

void GatherNodes::add_before(const ggml_tensor* node, ggml_context* context, ggml_cgraph* shadow) {
  const auto [first, last] = before_.equal_range(node);
  for (auto it = first; it != last; ++it) {
    Task& task = *it->second;
    if (task.rope != nullptr) ggml_graph_add_node(shadow, turn_elsewhere(task, context));
    ggml_tensor* gather = ggml_custom_4d(context, GGML_TYPE_F32, 1, 1, 1, 1, nullptr, 0, run_gather,
                                         GGML_N_TASKS_MAX, &task);
    gather->data = turned_.data();  // not written
    gather->flags |= GGML_TENSOR_FLAG_COMPUTE;
    ggml_graph_add_node(shadow, gather);
  }
}

ggml_tensor* GatherNodes::turn_elsewhere(Task& task, ggml_context* context) {
  const ggml_tensor* rope = task.rope;
  const std::int64_t n_tokens = rope->ne[2];
  task.positions.resize(static_cast<std::size_t>(n_tokens));
  std::ranges::generate(task.positions, [&] { return draw_position(n_drawn_++); });
  // M-RoPE takes several lists of positions, one after the other. For text all are the same.
  const std::int64_t n_lists = rope->src[1]->ne[0] / n_tokens;
  task.positions.reserve(task.positions.size() * static_cast<std::size_t>(n_lists));
  for (std::int64_t i = 1; i < n_lists; ++i) {
    task.positions.insert(task.positions.end(), task.positions.begin(),
                          task.positions.begin() + n_tokens);
  }
  ggml_tensor* positions = ggml_new_tensor_1d(context, GGML_TYPE_I32, rope->src[1]->ne[0]);
  positions->data = task.positions.data();
  // The rows of this new result are contiguous, whatever the layout of the model's ROPE is.
  ggml_tensor* turned = ggml_new_tensor(context, GGML_TYPE_F32, GGML_MAX_DIMS, rope->ne);
  turned->op = GGML_OP_ROPE;
  turned->flags = rope->flags;
  std::ranges::copy(rope->op_params, turned->op_params);
  std::ranges::copy(rope->src, turned->src);
  turned->src[1] = positions;
  turned->data = turned_.data();
  task.vectors = {.data = static_cast<const std::byte*>(turned->data),
                  .n_heads = rope->ne[1],
                  .n_tokens = n_tokens,
                  .n_streams = 1,
                  .head_bytes = turned->nb[1],
                  .token_bytes = turned->nb[2],
                  .stream_bytes = 0};
  return turned;
}

void GatherNodes::run_gather(ggml_tensor* /*result*/, int thread_idx, int n_threads, void* data) {
  const auto& task = *static_cast<const Task*>(data);
  const std::int64_t n_heads = task.moments->n_heads();
  const std::int64_t group = task.vectors.n_heads / n_heads;
  const auto add = [&] {
    for (std::int64_t head = thread_idx; head < n_heads; head += n_threads) {
      const std::vector<float> vectors = read(task, head * group, group);
      if (task.is_keys) {
        task.moments->add_keys(head, vectors);
      } else {
        task.moments->add_queries(head, vectors);
      }
    }
  };
  (void)is_done(add);  // after an exception, fewer vectors are collected
}

std::vector<float> GatherNodes::read(const Task& task, std::int64_t first_head,
                                     std::int64_t n_heads) {
  const Vectors& from = task.vectors;
  const auto head_dim = static_cast<std::size_t>(task.moments->head_dim());
  const auto n_tokens = static_cast<std::size_t>(from.n_tokens);
  std::vector<float> vectors;
  vectors.reserve(n_tokens * static_cast<std::size_t>(from.n_streams * n_heads) * head_dim);
  for (std::size_t i = 0; i < n_tokens * static_cast<std::size_t>(from.n_streams); ++i) {
    if (is_first_token(task.rope, static_cast<std::int64_t>(i))) continue;
    const std::byte* token =
        from.data + i / n_tokens * from.stream_bytes + i % n_tokens * from.token_bytes;
    for (std::int64_t head = first_head; head < first_head + n_heads; ++head) {
      const std::size_t start = vectors.size();
      vectors.resize(start + head_dim);
      std::memcpy(vectors.data() + start, token + static_cast<std::size_t>(head) * from.head_bytes,
                  head_dim * sizeof(float));
    }
  }
  if (task.factor != 1) {
    for (float& number : vectors) number *= task.factor;
  }
  return vectors;
}

}  // namespace slipstream::turbo
