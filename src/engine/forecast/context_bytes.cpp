#include "engine/forecast/context_bytes.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "contract/tile.h"

namespace slipstream {
namespace {

std::int64_t side_bytes(const AttentionLayer& layer, const KvScheme& scheme, turbo::Side side,
                        std::int64_t n_cells) {
  const bool is_key = side == turbo::Side::kKey;
  const std::int64_t channels = is_key ? layer.key_channels : layer.value_channels;
  const turbo::Bits bits = scheme.bits_of_layer(layer.layer);
  const int n_bits = is_key ? bits.keys : bits.values;
  if (n_bits == 0 || !can_compress(layer)) {
    const ggml_type type = is_key ? scheme.key_type() : scheme.value_type();
    return static_cast<std::int64_t>(ggml_row_size(type, channels)) * n_cells;
  }
  const auto head_dim = static_cast<int>(channels / layer.n_kv_heads);
  return static_cast<std::int64_t>(
             turbo::head_bytes(side, n_bits, head_dim, n_cells, scheme.attend() != 0)) *
         layer.n_kv_heads;
}

// The codes of a layer whose queries read a part of the tokens: they may lie in a file.
std::int64_t cold_bytes(const AttentionLayer& layer, const KvScheme& scheme, std::int64_t n_cells) {
  const turbo::Bits bits = scheme.bits_of_layer(layer.layer);
  if (scheme.attend() == 0 || bits.keys == 0 || !can_compress(layer)) return 0;
  const auto codes = [&](int n_bits, std::int64_t channels) {
    const auto head_dim = static_cast<int>(channels / layer.n_kv_heads);
    return static_cast<std::int64_t>(turbo::code_bytes(n_bits, head_dim, n_cells)) *
           layer.n_kv_heads;
  };
  return codes(bits.keys, layer.key_channels) + codes(bits.values, layer.value_channels);
}

// Number of f32 values per token that are alive at once in one attention.
std::int64_t attention_numbers(const AttentionLayer& layer, std::int64_t n_embd) {
  const std::int64_t queries = layer.n_heads * layer.key_head_dim();
  if (layer.is_latent()) return 2 * (queries + layer.key_channels) + 3 * n_embd;
  return 2 * queries + layer.key_channels + layer.value_channels + n_embd;
}

// The widest head whose scores a thread computes in its own scratch.
std::int64_t widest_head(const ModelGeometry& model) {
  std::int64_t widest = 0;
  for (const AttentionLayer& layer : model.attention) {
    if (!layer.is_latent()) widest = std::max(widest, layer.key_head_dim());
  }
  return widest;
}

// Our plugin examines the first rows of keys and of values, then frees them. malloc may return or
// keep them, depending on the layout of its heap. The forecast counts one of the two.
std::int64_t early_rows_bytes(const ModelGeometry& model, std::int64_t n_tokens) {
  std::int64_t channels = 0;
  for (const AttentionLayer& layer : model.attention) {
    if (can_compress(layer)) channels = std::max(channels, layer.key_channels);
  }
  return channels * n_tokens * static_cast<std::int64_t>(sizeof(float));
}

// How many nodes libllama reserves in a graph (llama_context::graph_max_nodes). Linear attention
// unrolls its tokens.
std::int64_t graph_nodes(const ModelGeometry& model, std::int64_t n_tokens) {
  constexpr std::array<std::string_view, 8> kUnrolled = {"qwen3next",   "qwen35",      "qwen35moe",
                                                         "kimi-linear", "bailingmoe3", "nanbeige",
                                                         "minimax-01",  "kimi-k3"};
  if (std::ranges::contains(kUnrolled, model.architecture)) {
    return std::max(40 * n_tokens, 32 * model.n_tensors);
  }
  return std::max<std::int64_t>(1024, 8 * model.n_tensors);
}

}  // namespace

bool can_compress(const AttentionLayer& layer) {
  return !layer.is_latent() && turbo::is_code_head(layer.key_head_dim()) &&
         turbo::is_code_head(layer.value_head_dim()) &&
         layer.n_heads / layer.n_kv_heads <= turbo::kGroupMax;
}

Result<void> check_cache(const ModelGeometry& model, const KvScheme& scheme) {
  for (const AttentionLayer& layer : model.attention) {
    const auto fits = [&](ggml_type type, std::int64_t head_dim) {
      return head_dim % ggml_blck_size(type) == 0;
    };
    if (!fits(scheme.key_type(), layer.key_head_dim()) ||
        !fits(scheme.value_type(), layer.value_head_dim())) {
      return fail(Code::kUnsupported, format_text("libllama has no {} cache for heads of {}",
                                                  scheme.name(), layer.key_head_dim()));
    }
  }
  return {};
}

std::uint64_t cache_bytes(const ModelGeometry& model, const KvScheme& scheme,
                          const ContextShape& shape) {
  std::int64_t n_bytes = 0;
  std::int64_t n_cold = 0;
  for (const AttentionLayer& layer : model.attention) {
    n_bytes += side_bytes(layer, scheme, turbo::Side::kKey, shape.n_ctx) +
               side_bytes(layer, scheme, turbo::Side::kValue, shape.n_ctx);
    n_cold += cold_bytes(layer, scheme, shape.n_ctx);
  }
  if (shape.kv_memory_bytes != 0 && std::cmp_greater(n_cold, shape.kv_memory_bytes)) {
    n_bytes -= n_cold - static_cast<std::int64_t>(shape.kv_memory_bytes);
  }
  const std::int64_t n_states = model.n_recurrent_layers * shape.n_sequences_max;
  n_bytes += n_states * model.state_numbers * static_cast<std::int64_t>(sizeof(float));
  return static_cast<std::uint64_t>(n_bytes);
}

std::uint64_t compute_bytes(const ModelGeometry& model, const ContextShape& shape) {
  const std::int64_t n_tokens = std::min(shape.n_ubatch, shape.n_ctx);
  const std::int64_t n_embd = model.n_embd;
  // Besides the results of each part, the residual stream takes three embeddings, and gaps left by
  // ggml's allocator take up to two more.
  std::int64_t numbers = std::max(
      {model.ff_in + model.ff_out + 5 * n_embd, model.experts_in + model.experts_out + 5 * n_embd,
       (2 * model.n_experts_used + 3) * n_embd, 5 * model.state_channels});
  std::int64_t widest = std::max({n_embd, model.ff_out, model.experts_out, model.state_channels});
  for (const AttentionLayer& layer : model.attention) {
    numbers = std::max(numbers, attention_numbers(layer, n_embd));
    widest = std::max(widest, layer.n_heads * layer.key_head_dim());
  }
  constexpr std::int64_t kF32 = sizeof(float);
  constexpr std::int64_t kF16 = 2;
  const std::int64_t results = numbers * n_tokens * kF32;
  // Inputs of a product are first converted to the type that the weights are multiplied with.
  const std::int64_t converted = widest * n_tokens * kF16;
  const std::int64_t masks = shape.n_ctx * n_tokens * kF16 * (model.has_window ? 2 : 1);
  const std::int64_t logits = model.n_vocab * shape.n_outputs() * kF32;
  const std::int64_t states =
      model.n_recurrent_layers > 0 ? model.state_numbers * shape.n_sequences_max * kF32 * 3 / 2 : 0;
  return static_cast<std::uint64_t>(results + converted + masks + logits + states);
}

// The constants are measured: growth of a process's resident set, contexts of 1,024 and 32,768
// cells, vocabularies of 2,048 to 151,936 tokens, 1 to 32 threads.
std::uint64_t notes_bytes(const ModelGeometry& model, const KvScheme& scheme,
                          const ContextShape& shape) {
  constexpr std::int64_t kProgram = 3 << 19;  // pages of libraries and tables that loading touches
  constexpr std::int64_t kPerNode = 770;      // of graphs and their plans
  constexpr std::int64_t kPerToken = 160;
  constexpr std::int64_t kPerMerge = 170;
  constexpr std::int64_t kBpe = 2 << 20;          // tables of Unicode
  constexpr std::int64_t kPerCell = 150;          // position, sequences, and both in trees
  constexpr std::int64_t kPerDraftable = 20;      // ngram_drafter.h
  constexpr std::int64_t kPerThread = 200 << 10;  // scratch of an attention with heads of 128
  const bool is_quantised = ggml_is_quantized(scheme.key_type());
  const std::int64_t n_caches = model.has_window ? 2 : 1;
  const std::int64_t n_tokens = std::min(shape.n_ubatch, shape.n_ctx);
  const std::int64_t vocabulary =
      model.n_vocab * kPerToken + model.n_merges * kPerMerge + (model.is_bpe ? kBpe : 0);
  const std::int64_t threads =
      is_quantised ? 0 : shape.n_threads * kPerThread * widest_head(model) / 128;
  const std::int64_t outputs = model.n_vocab * shape.n_outputs() * 4;
  const std::int64_t drafts = shape.has_drafts ? shape.n_ctx * kPerDraftable : 0;
  const std::int64_t plugin = scheme.is_turbo() ? early_rows_bytes(model, n_tokens) : 0;
  return static_cast<std::uint64_t>(kProgram + graph_nodes(model, n_tokens) * kPerNode +
                                    vocabulary + shape.n_ctx * kPerCell * n_caches + threads +
                                    outputs + drafts + plugin);
}

}  // namespace slipstream
