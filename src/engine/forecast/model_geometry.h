// ModelGeometry: the sizes of a model that decide how much memory it takes besides its weights.
//
// Which layers have a KV cache, and how wide it is, comes from the layer's tensors if they show it,
// otherwise from the metadata, as in libllama. All numbers are bounded (kDimensionMax), so that
// products of a few of them do not overflow.
//
// Threads: immutable.
// Errors:  kUnsupported for a model without attention or with an unknown kind of cache;
//          kCorrupt for impossible sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/forecast/gguf_model.h"

namespace slipstream {

inline constexpr std::int64_t kDimensionMax = 1 << 20;
inline constexpr std::int64_t kLayersMax = 1 << 10;

// One layer's part of the KV cache: the contents of one of its cells.
struct AttentionLayer {
  int layer = 0;
  std::int64_t n_heads = 0;
  std::int64_t n_kv_heads = 0;
  std::int64_t key_channels = 0;    // of all KV heads
  std::int64_t value_channels = 0;  // 0: values are part of the keys (latent attention)

  [[nodiscard]] std::int64_t key_head_dim() const { return key_channels / n_kv_heads; }
  [[nodiscard]] std::int64_t value_head_dim() const { return value_channels / n_kv_heads; }
  [[nodiscard]] bool is_latent() const { return value_channels == 0; }
};

struct ModelGeometry {
  std::string architecture;
  std::int64_t n_ctx_train = 0;     // 0: not stated
  std::int64_t n_ctx_original = 0;  // before the model's own rope scaling; 0: it has none
  std::int64_t n_layers = 0;
  std::int64_t n_tensors = 0;
  std::int64_t n_embd = 0;
  std::int64_t n_vocab = 0;
  std::int64_t n_merges = 0;
  bool is_bpe = false;
  // The widest feed-forward block: inputs and outputs of its activation function.
  std::int64_t ff_in = 0;
  std::int64_t ff_out = 0;
  // The same, summed over all experts that a token passes through.
  std::int64_t experts_in = 0;
  std::int64_t experts_out = 0;
  std::int64_t n_experts = 0;
  std::int64_t n_experts_used = 0;

  std::vector<AttentionLayer> attention;  // layers with a KV cache
  bool has_window = false;                // libllama keeps two caches, one of them for the window

  // Recurrent layers of hybrid models keep a state per sequence instead.
  std::int64_t n_recurrent_layers = 0;
  std::int64_t state_numbers = 0;   // f32, per layer and sequence
  std::int64_t state_channels = 0;  // that a token passes through
};

[[nodiscard]] Result<ModelGeometry> read_geometry(const GgufModel& model);

}  // namespace slipstream
