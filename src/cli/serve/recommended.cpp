#include "cli/serve/recommended.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "cli/serve/models.h"
#include "engine/forecast/context_choice.h"

namespace slipstream::serve {
namespace {

// All of these have the same family of vocabularies.
constexpr std::int64_t kVocabulary = 151936;
constexpr std::int64_t kMerges = 151387;
constexpr std::int64_t kTensorsPerLayer = 12;

constexpr auto kRecommendations = std::to_array<Recommendation>({
    {.repo = "Qwen/Qwen3-30B-A3B-GGUF",
     .about = "30 billion weights, of which a token uses 3: the most able here, and fast for it",
     .architecture = "qwen3moe",
     .n_context = 40960,
     .n_layers = 48,
     .n_embd = 2048,
     .n_ff = 768,
     .n_heads = 32,
     .n_kv_heads = 4,
     .head_dim = 128,
     .n_experts = 128,
     .n_experts_used = 8},
    {.repo = "Qwen/Qwen3-8B-GGUF",
     .about = "8 billion weights: for chats, tools and code, where the machine is fast",
     .architecture = "qwen3",
     .n_context = 40960,
     .n_layers = 36,
     .n_embd = 4096,
     .n_ff = 12288,
     .n_heads = 32,
     .n_kv_heads = 8,
     .head_dim = 128},
    {.repo = "Qwen/Qwen3-4B-GGUF",
     .about = "4 billion weights: for chats and tools on most machines",
     .architecture = "qwen3",
     .n_context = 40960,
     .n_layers = 36,
     .n_embd = 2560,
     .n_ff = 9728,
     .n_heads = 32,
     .n_kv_heads = 8,
     .head_dim = 128,
     .has_tied_embeddings = true},
    {.repo = "Qwen/Qwen3-1.7B-GGUF",
     .about = "1.7 billion weights: quick, for short tasks",
     .architecture = "qwen3",
     .n_context = 40960,
     .n_layers = 28,
     .n_embd = 2048,
     .n_ff = 6144,
     .n_heads = 16,
     .n_kv_heads = 8,
     .head_dim = 128,
     .has_tied_embeddings = true},
    {.repo = "Qwen/Qwen3-0.6B-GGUF",
     .about = "0.6 billion weights: to try things out",
     .architecture = "qwen3",
     .n_context = 40960,
     .n_layers = 28,
     .n_embd = 1024,
     .n_ff = 3072,
     .n_heads = 16,
     .n_kv_heads = 8,
     .head_dim = 128,
     .has_tied_embeddings = true},
});

ModelGeometry geometry_of(const Recommendation& model) {
  ModelGeometry geometry;
  geometry.architecture = model.architecture;
  geometry.n_ctx_train = model.n_context;
  geometry.n_layers = model.n_layers;
  geometry.n_tensors = model.n_layers * kTensorsPerLayer;
  geometry.n_embd = model.n_embd;
  geometry.n_vocab = kVocabulary;
  geometry.n_merges = kMerges;
  geometry.is_bpe = true;
  if (model.n_experts > 0) {
    geometry.n_experts = model.n_experts;
    geometry.n_experts_used = model.n_experts_used;
    geometry.experts_in = 2 * model.n_ff * model.n_experts_used;
    geometry.experts_out = model.n_ff * model.n_experts_used;
  } else {
    geometry.ff_in = 2 * model.n_ff;
    geometry.ff_out = model.n_ff;
  }
  for (int layer = 0; layer < model.n_layers; ++layer) {
    geometry.attention.push_back({.layer = layer,
                                  .n_heads = model.n_heads,
                                  .n_kv_heads = model.n_kv_heads,
                                  .key_channels = model.n_kv_heads * model.head_dim,
                                  .value_channels = model.n_kv_heads * model.head_dim});
  }
  return geometry;
}

}  // namespace

std::span<const Recommendation> recommendations() { return kRecommendations; }

Result<KvChoice> choose_for(const Recommendation& model, std::uint64_t weights_bytes,
                            std::uint64_t available_bytes, const Options& options,
                            bool has_plugin) {
  // Where stock copies weights, their originals can leave memory; either way they are there once.
  // Embeddings that are the output, too, are looked up in the file and copied for products: a byte
  // for each weight.
  ModelProfile profile{.geometry = geometry_of(model), .weights = {}};
  profile.weights.mapped = weights_bytes;
  if (model.has_tied_embeddings) {
    profile.weights.copied = static_cast<std::uint64_t>(kVocabulary * model.n_embd);
  }
  const bool is_free = options.kv.scheme == "auto";
  std::vector<KvScheme> schemes;
  if (is_free) {
    schemes = candidates(profile.geometry, has_plugin);
  } else {
    const Result<KvScheme> asked = parse_kv_scheme(options.kv.scheme);
    if (!asked) return std::unexpected(asked.error());
    schemes.push_back(*asked);
  }
  ContextShape shape = context_shape(options);
  if (shape.n_ctx == 0) {
    shape.n_ctx = model.n_context;
    Result<std::optional<KvChoice>> roomy =
        choose_context(profile, schemes, unasked_bytes(available_bytes, n_models(options)), shape);
    if (!roomy) return std::unexpected(roomy.error());
    if (*roomy) return std::move(**roomy);
    shape.n_ctx = kContextLeast;
  }
  if (is_free) return choose(profile, available_bytes, shape, has_plugin);
  return check_fits(profile, schemes.front(), available_bytes, shape, has_plugin);
}

}  // namespace slipstream::serve
