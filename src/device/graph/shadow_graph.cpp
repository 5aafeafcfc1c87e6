#include "device/graph/shadow_graph.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ranges>
#include <utility>

#include "device/graph/binding.h"
#include "device/kv_buffer/precise_chunks.h"

namespace slipstream::turbo {
namespace {

// Nodes that compute nothing: they only describe memory.
bool is_description(const ggml_tensor* node) {
  switch (node->op) {
    case GGML_OP_NONE:
    case GGML_OP_RESHAPE:
    case GGML_OP_VIEW:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE: return true;
    default: return false;
  }
}

bool touches_cache(const ggml_tensor* node) {
  return is_in_cache(node) || std::ranges::any_of(node->src, [](const ggml_tensor* src) {
           return src != nullptr && is_in_cache(src);
         });
}

bool is_compressed(const ggml_tensor* tensor) {
  CacheTensor* cache = find_cache(tensor);
  return cache != nullptr && cache->compressed() != nullptr;
}

// Components [first, first + into.size()) of row i of the tensor that is written into the cache.
void read_source(const ggml_tensor* rows, std::int64_t i, std::int64_t first,
                 std::span<float> into) {
  const char* row =
      static_cast<const char*>(rows->data) + static_cast<std::size_t>(i) * rows->nb[1];
  if (rows->type == GGML_TYPE_F32) {
    std::memcpy(into.data(), reinterpret_cast<const float*>(row) + first, into.size_bytes());
  } else {
    ggml_fp16_to_fp32_row(reinterpret_cast<const ggml_fp16_t*>(row) + first, into.data(),
                          static_cast<std::int64_t>(into.size()));
  }
}

// Whether the op writes whole cache rows of f32 or f16 to a plain list of row indices, as libllama
// does. Any other write is done on expanded rows.
bool is_plain_row_write(const ggml_tensor* op, const CacheTensor& cache) {
  const ggml_tensor* rows = op->src[0];
  return op->op == GGML_OP_SET_ROWS && rows->ne[0] == cache.n_channels() && rows->ne[2] == 1 &&
         rows->ne[3] == 1 && rows->nb[0] == ggml_type_size(rows->type) &&
         (rows->type == GGML_TYPE_F32 || rows->type == GGML_TYPE_F16) && cache_offset(op) == 0 &&
         op->ne[0] == cache.n_channels() && op->nb[1] == cache.row_bytes();
}

}  // namespace

Result<ggml_cgraph*> ShadowGraph::build(ggml_cgraph* graph, Options options) {
  const int n_nodes = ggml_graph_n_nodes(graph);
  int n_on_cache = 0;
  for (int i = 0; i < n_nodes; ++i) {
    const ggml_tensor* node = ggml_graph_node(graph, i);
    if (is_description(node) || !touches_cache(node)) continue;
    ++n_on_cache;
    if (node->op == GGML_OP_FLASH_ATTN_EXT) {
      if (Result<void> bound = bind_attention(node); !bound) {
        return std::unexpected(std::move(bound.error()));
      }
    }
  }
  writes_.clear();
  reads_.clear();
  expands_.clear();
  outgrown_.clear();
  nodes_.clear();
  n_plans_ = 0;
  gather_.plan(graph, std::move(options.fit_run));
  products_.clear();
  if (options.has_products) products_.plan(graph);
  // A node on the cache becomes at most a copy of itself, copies of its sources, and an expansion
  // and a compression for each. A product becomes a node for each of its steps.
  const auto n_tensors = static_cast<std::size_t>(n_on_cache) * (3 * GGML_MAX_SRC + 3) +
                         gather_.n_tensors() + ProductNodes::kStepsMax * products_.n_products();
  const auto n_shadow_nodes =
      static_cast<std::size_t>(n_nodes + n_on_cache * 2 * GGML_MAX_SRC + 1) + gather_.n_nodes() +
      ProductNodes::kStepsMax * products_.n_products();
  context_.reset(ggml_init({.mem_size = n_tensors * ggml_tensor_overhead() +
                                        ggml_graph_overhead_custom(n_shadow_nodes, false),
                            .mem_buffer = nullptr,
                            .no_alloc = true}));
  if (!context_) return fail(Code::kOutOfMemory, "no memory for the graph");
  shadow_ = ggml_new_graph_custom(context_.get(), n_shadow_nodes, false);
  BindingNotes notes;
  for (int i = 0; i < n_nodes; ++i) {
    ggml_tensor* node = ggml_graph_node(graph, i);
    gather_.add_before(node, context_.get(), shadow_);
    if (is_description(node)) {
      ggml_graph_add_node(shadow_, node);
      continue;
    }
    const bool on_cache = touches_cache(node);
    const ProductKind kind =
        on_cache || !options.has_products ? ProductKind::kStock : product_kind(node);
    if (kind != ProductKind::kStock) {
      for (const auto& [run, task] : products_.add(node, kind)) add_custom(node, run, task);
      continue;
    }
    products_.pass(node);
    if (!on_cache) {
      ggml_graph_add_node(shadow_, node);
      continue;
    }
    if (Result<void> bound = bind_rest(node); !bound) {
      return std::unexpected(std::move(bound.error()));
    }
    notes.take(node);
    if (Result<void> added = add_on_cache(node); !added) {
      return std::unexpected(std::move(added.error()));
    }
  }
  notes.log();
  return shadow_;
}

void ShadowGraph::add_custom(const ggml_tensor* op, NodeFunction function, void* task) {
  ggml_graph_add_node(shadow_, nodes_.make(context_.get(), op, function, task));
}

void ShadowGraph::add_custom(const ggml_tensor* op, FallibleNodeFunction function, void* task) {
  ggml_graph_add_node(shadow_, nodes_.make(context_.get(), op, function, task));
}

ggml_status ShadowGraph::end() {
  const ggml_status status = nodes_.status();
  if (status == GGML_STATUS_SUCCESS) return status;
  // The program takes back rows that it asked to write. But it would shift keys again.
  for (const ExpandTask& expand : expands_) {
    if (expand.is_written) expand.cache->compressed()->lose("a change of all of them has failed");
  }
  return status;
}

Result<void> ShadowGraph::add_on_cache(ggml_tensor* node) {
  if (node->op == GGML_OP_FLASH_ATTN_EXT &&
      (is_compressed(node->src[1]) || is_compressed(node->src[2])) && suits_tiles(node)) {
    CacheTensor* keys = find_cache(node->src[1]);
    reads_.push_back({.op = node,
                      .keys = keys,
                      .values = find_cache(node->src[2]),
                      .first_stream = static_cast<std::int64_t>(cache_offset(node->src[1]) /
                                                                keys->stream_bytes()),
                      .plan = plan_of(node),
                      .own_cells = own_cells(node)});
    add_custom(node, run_read, &reads_.back());
    return {};
  }
  if (is_compressed(node) && is_plain_row_write(node, *find_cache(node))) {
    writes_.push_back({.op = node, .cache = find_cache(node)});
    if (Result<void> kept = keep_precise(writes_.back()); !kept) return kept;
    if (find_cache(node)->compressed()->is_centre_open()) {
      add_custom(node, run_observe, &writes_.back());
    }
    add_custom(node, run_write, &writes_.back());
    return {};
  }

  // Copies the node and makes its cache pointers lead to the plain cache's rows or to an expansion.
  std::array<CacheTensor*, GGML_MAX_SRC + 1> caches{};
  std::array<std::byte*, GGML_MAX_SRC + 1> rows{};
  std::size_t n_caches = 0;
  const auto rows_of = [&](const ggml_tensor* tensor) -> Result<std::byte*> {
    CacheTensor* cache = find_cache(tensor);
    if (cache->plain() != nullptr) return cache->plain();
    const auto* found = std::find(caches.begin(), caches.begin() + n_caches, cache);
    if (found != caches.begin() + n_caches)
      return rows[static_cast<std::size_t>(found - caches.begin())];
    Result<std::byte*> memory =
        expansion(n_caches, cache->row_bytes() * static_cast<std::size_t>(cache->n_rows()));
    if (!memory) return memory;
    caches[n_caches] = cache;
    rows[n_caches] = *memory;
    ++n_caches;
    return memory;
  };
  ggml_tensor* copy = copy_of(node, nullptr);
  for (ggml_tensor*& src : copy->src) {
    if (src == nullptr || !is_in_cache(src)) continue;
    const Result<std::byte*> memory = rows_of(src);
    if (!memory) return std::unexpected(memory.error());
    src = copy_of(src, *memory);
  }
  if (is_in_cache(node)) {
    const Result<std::byte*> memory = rows_of(node);
    if (!memory) return std::unexpected(memory.error());
    copy->data = *memory + cache_offset(node);
  }
  CacheTensor* written = is_compressed(node) ? find_cache(node) : nullptr;
  ExpandTask* compress = nullptr;
  for (std::size_t i = 0; i < n_caches; ++i) {
    expands_.push_back({.cache = caches[i], .rows = reinterpret_cast<ggml_fp16_t*>(rows[i])});
    add_custom(node, run_expand, &expands_.back());
    if (caches[i] == written) compress = &expands_.back();
  }
  ggml_graph_add_node(shadow_, copy);
  if (compress != nullptr) {
    written->compressed()->close_centre();  // the node writes rows that were not observed
    compress->is_written = true;
    add_custom(node, run_compress, compress);
  }
  return {};
}

// The row indices are an input of the graph, so they can be read before anything is computed.
Result<void> ShadowGraph::keep_precise(const WriteTask& write) {
  CompressedCache& cache = *write.cache->compressed();
  if (!cache.has_precise()) return {};
  std::vector<std::int64_t> row_idx(static_cast<std::size_t>(write.op->src[0]->ne[1]));
  for (std::size_t i = 0; i < row_idx.size(); ++i) {
    row_idx[i] = index_at(write.op->src[1], static_cast<std::int64_t>(i));
  }
  const CacheShape wanted =
      PreciseChunks::scratch_shape(cache.shape(), static_cast<std::int64_t>(row_idx.size()));
  const auto is_alike = [&](const std::shared_ptr<CompressedCache>& scratch) {
    const CacheShape& shape = scratch->shape();
    return shape.side == wanted.side && shape.head_dim == wanted.head_dim &&
           shape.n_heads == wanted.n_heads;
  };
  auto scratch = std::ranges::find_if(scratches_, is_alike);
  if (scratch == scratches_.end() || (*scratch)->shape().n_cells < wanted.n_cells) {
    Result<CompressedCache> made = CompressedCache::create(wanted);
    if (!made) return std::unexpected(std::move(made.error()));
    if (scratch == scratches_.end()) scratch = scratches_.emplace(scratch);
    *scratch = std::make_shared<CompressedCache>(std::move(*made));
  }
  return cache.keep_precise(row_idx, *scratch);
}

// The cells that the queries' own tokens are written into: the indices of one of the last two
// writes before the attention, if there is one index for each query. A layer that reads the cache
// of an earlier layer gets null, because the earlier layer's chunks in the scratch are gone.
const ggml_tensor* ShadowGraph::own_cells(const ggml_tensor* attention) const {
  const ggml_tensor* q = attention->src[0];
  const CacheTensor* keys = find_cache(attention->src[1]);
  const CacheTensor* values = find_cache(attention->src[2]);
  for (const WriteTask& write : writes_ | std::views::reverse | std::views::take(2)) {
    const ggml_tensor* indices = write.op->src[1];
    if ((write.cache == keys || write.cache == values) && indices->ne[0] == q->ne[1] * q->ne[3]) {
      return indices;
    }
  }
  return nullptr;
}

// Returns the plan of an earlier attention of this graph if it fits. Otherwise adds a new plan and
// the node that makes it: when that node runs, the mask has been computed.
SharedPlan* ShadowGraph::plan_of(const ggml_tensor* attention) {
  for (std::size_t i = 0; i < n_plans_; ++i) {
    if (plans_[i].fits(attention)) return &plans_[i];
  }
  if (n_plans_ == plans_.size()) plans_.emplace_back();
  SharedPlan* plan = &plans_[n_plans_++];
  plan->reset(attention);
  add_custom(attention, run_plan, plan);
  return plan;
}

ggml_tensor* ShadowGraph::copy_of(const ggml_tensor* tensor, std::byte* rows) {
  ggml_tensor* copy = ggml_new_tensor_1d(context_.get(), GGML_TYPE_F32, 1);
  *copy = *tensor;
  if (rows != nullptr) copy->data = rows + cache_offset(tensor);
  return copy;
}

Result<std::byte*> ShadowGraph::expansion(std::size_t idx, std::size_t n_bytes) {
  if (expansions_.size() <= idx) expansions_.resize(idx + 1);
  if (expansions_[idx].bytes().size() < n_bytes) {
    Result<Mapping> memory = Mapping::anonymous(n_bytes);
    if (!memory) return std::unexpected(std::move(memory.error()));
    // Earlier nodes use the old expansion until the graph has been computed.
    outgrown_.push_back(std::exchange(expansions_[idx], std::move(*memory)));
  }
  return expansions_[idx].bytes().data();
}

void ShadowGraph::run_plan(int thread_idx, int n_threads, void* plan) {
  if (thread_idx == 0) static_cast<SharedPlan*>(plan)->make(n_threads);
}

Result<void> ShadowGraph::run_read(int thread_idx, int /*n_threads*/, void* task) {
  return run_attention(*static_cast<const AttentionTask*>(task), thread_idx);
}

Result<void> ShadowGraph::run_observe(int thread_idx, int /*n_threads*/, void* task) {
  if (thread_idx != 0) return {};  // ggml runs a custom node on every thread
  const auto& write = *static_cast<const WriteTask*>(task);
  const auto n_channels = static_cast<std::size_t>(write.cache->n_channels());
  const std::int64_t n_rows = write.op->src[0]->ne[1];
  std::vector<std::int64_t> row_idx;
  std::vector<float> rows(static_cast<std::size_t>(n_rows) * n_channels);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    row_idx.push_back(index_at(write.op->src[1], i));
    read_source(write.op->src[0], i, 0,
                std::span(rows).subspan(static_cast<std::size_t>(i) * n_channels, n_channels));
  }
  return write.cache->compressed()->observe(row_idx, rows);
}

Result<void> ShadowGraph::run_write(int thread_idx, int n_threads, void* task) {
  const auto& write = *static_cast<const WriteTask*>(task);
  CompressedCache& cache = *write.cache->compressed();
  const std::int64_t n_heads = cache.shape().n_heads;
  const auto head_dim = static_cast<std::size_t>(cache.shape().head_dim);
  const std::int64_t n_rows = write.op->src[0]->ne[1];
  const auto tile_of = [&](std::int64_t row) {
    return row / write.cache->n_cells() * cache.shape().n_tiles() +
           row % write.cache->n_cells() / kTileTokens;
  };
  std::array<std::int64_t, kTileTokens> rows;
  std::array<float, kTileTokens * kHeadDimMax> vectors;
  HeldRows held(cache, Access::kWrite);
  for (std::int64_t first = 0; first < n_rows;) {
    // Collects the next rows that go into the same tile.
    std::size_t n = 0;
    const std::int64_t tile = tile_of(index_at(write.op->src[1], first));
    for (std::int64_t i = first; i < n_rows && n < rows.size(); ++i, ++n) {
      rows[n] = index_at(write.op->src[1], i);
      if (tile_of(rows[n]) != tile) break;
    }
    if (Result<void> moved = held.move_to(rows[0]); !moved) return moved;
    for (std::int64_t head = 0; head < n_heads; ++head) {
      // One thread writes a tile, because tokens share bytes of it.
      if ((tile * n_heads + head) % n_threads != thread_idx) continue;
      for (std::size_t i = 0; i < n; ++i) {
        read_source(write.op->src[0], first + static_cast<std::int64_t>(i),
                    head * cache.shape().head_dim,
                    std::span(vectors).subspan(i * head_dim, head_dim));
      }
      cache.write_rows({rows.data(), n}, head, {vectors.data(), n * head_dim});
    }
    first += static_cast<std::int64_t>(n);
  }
  return {};
}

Result<void> ShadowGraph::run_expand(int thread_idx, int n_threads, void* task) {
  const auto& expand = *static_cast<const ExpandTask*>(task);
  const std::int64_t n_channels = expand.cache->n_channels();
  std::vector<float> row(static_cast<std::size_t>(n_channels));
  HeldRows held(*expand.cache->compressed(), Access::kRead);
  for (std::int64_t i = thread_idx; i < expand.cache->n_rows(); i += n_threads) {
    if (Result<void> moved = held.move_to(i); !moved) return moved;
    expand.cache->read_row(i, row);
    ggml_fp32_to_fp16_row(row.data(), expand.rows + i * n_channels, n_channels);
  }
  return {};
}

Result<void> ShadowGraph::run_compress(int thread_idx, int n_threads, void* task) {
  const auto& compress = *static_cast<const ExpandTask*>(task);
  const std::int64_t n_channels = compress.cache->n_channels();
  std::vector<float> row(static_cast<std::size_t>(n_channels));
  HeldRows held(*compress.cache->compressed(), Access::kWrite);
  for (std::int64_t i = 0; i < compress.cache->n_rows(); ++i) {
    // Tiles are counted within a stream, because a stream need not end at the end of a tile.
    if (i % compress.cache->n_cells() / kTileTokens % n_threads != thread_idx) continue;
    if (Result<void> moved = held.move_to(i); !moved) return moved;
    ggml_fp16_to_fp32_row(compress.rows + i * n_channels, row.data(), n_channels);
    compress.cache->write_row(i, row);
  }
  return {};
}

}  // namespace slipstream::turbo
