#include "engine/forecast/model_geometry.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/format.h"

namespace slipstream {
namespace {

constexpr std::array<std::string_view, 14> kWithoutCache = {"bert",
                                                            "jina-bert-v2",
                                                            "jina-bert-v3",
                                                            "nomic-bert",
                                                            "nomic-bert-moe",
                                                            "neo-bert",
                                                            "eurobert",
                                                            "modern-bert",
                                                            "wavtokenizer-dec",
                                                            "gemma-embedding",
                                                            "dream",
                                                            "llada",
                                                            "llada-moe",
                                                            "rnd1"};
// These have caches for sparse attention beside or instead of keys and values.
constexpr std::array<std::string_view, 7> kOtherCaches = {
    "deepseek32", "deepseek4", "glm-dsa", "minimax-m3", "dots3note", "dflash", "gemma4-assistant"};

class Reader {
 public:
  explicit Reader(const GgufModel& model) : model_(model) {}

  Result<ModelGeometry> read();

 private:
  // A number from the metadata; 0 if it is absent. An impossible one is kept as the error.
  std::int64_t number(std::string_view key) { return bounded(key, model_.integer(key)); }
  std::int64_t number_at(std::string_view key, std::int64_t layer) {
    return bounded(key, model_.integer_at(key, static_cast<std::size_t>(layer)));
  }
  std::int64_t bounded(std::string_view what, std::optional<std::int64_t> value) {
    const std::int64_t number = value.value_or(0);
    if (number >= 0 && number <= kDimensionMax) return number;
    if (fault_.empty()) fault_ = format_text("{} is {}", what, number);
    return 0;
  }
  const GgufTensor* tensor(std::int64_t layer, std::string_view name) const {
    return model_.find_tensor(format_text("blk.{}.{}.weight", layer, name));
  }
  // The number of rows (outputs) of a matrix of the layer; 0 if there is none.
  std::int64_t rows(std::int64_t layer, std::string_view name) {
    const GgufTensor* found = tensor(layer, name);
    return found == nullptr ? 0 : bounded(found->name, found->ne[1]);
  }

  bool is_recurrent(std::int64_t layer) const;
  std::optional<AttentionLayer> read_attention(std::int64_t layer);
  void read_feed_forward(ModelGeometry& geometry, std::int64_t layer);
  void read_state(ModelGeometry& geometry);
  void read_vocabulary(ModelGeometry& geometry);

  const GgufModel& model_;
  std::int64_t n_embd_ = 0;
  std::string fault_;
};

bool Reader::is_recurrent(std::int64_t layer) const {
  return std::ranges::any_of(std::array{"ssm_", "shortconv.", "time_mix"}, [&](const char* part) {
    return model_.has_tensors(format_text("blk.{}.{}", layer, part));
  });
}

std::optional<AttentionLayer> Reader::read_attention(std::int64_t layer) {
  AttentionLayer attention{.layer = static_cast<int>(layer)};
  attention.n_heads = number_at("%s.attention.head_count", layer);
  const bool says_kv_heads = model_.integer_at("%s.attention.head_count_kv", 0).has_value();
  attention.n_kv_heads =
      says_kv_heads ? number_at("%s.attention.head_count_kv", layer) : attention.n_heads;
  if (attention.n_heads == 0 || attention.n_kv_heads == 0) return std::nullopt;
  std::int64_t key_length = number("%s.attention.key_length");
  if (key_length == 0) key_length = n_embd_ / attention.n_heads;
  std::int64_t value_length = number("%s.attention.value_length");
  if (value_length == 0) value_length = n_embd_ / attention.n_heads;

  const std::int64_t key_rows = rows(layer, "attn_k");
  const bool is_latent = tensor(layer, "attn_kv_a_mqa") != nullptr;
  // Linear attention also has a fused matrix, but a state instead of a cache.
  const bool is_fused = tensor(layer, "attn_qkv") != nullptr && !is_recurrent(layer);
  if (key_rows == 0 && !is_latent && !is_fused) return std::nullopt;
  attention.key_channels = key_rows != 0 ? key_rows : attention.n_kv_heads * key_length;
  attention.value_channels = rows(layer, "attn_v");
  if (attention.value_channels == 0) {
    // Values computed with the keys' matrix are as wide as keys.
    attention.value_channels = key_rows != 0 && key_length == value_length
                                   ? key_rows
                                   : attention.n_kv_heads * value_length;
  }
  // Newer files with latent attention cache only the latent (libllama: hparams.is_mla()).
  if (is_latent && number("%s.attention.key_length_mla") != 0 &&
      number("%s.attention.value_length_mla") != 0) {
    attention.value_channels = 0;
  }
  for (const std::int64_t channels : {attention.key_channels, attention.value_channels}) {
    bounded(format_text("the cache of layer {}", layer), channels);
    if (channels % attention.n_kv_heads != 0 && fault_.empty()) {
      fault_ = format_text("layer {} has {} channels for {} KV heads", layer, channels,
                           attention.n_kv_heads);
    }
  }
  bounded(format_text("the width of the queries of layer {}", layer),
          attention.n_heads * attention.key_head_dim());
  return attention;
}

void Reader::read_feed_forward(ModelGeometry& geometry, std::int64_t layer) {
  const auto columns = [&](std::string_view name) {
    const GgufTensor* found = tensor(layer, name);
    return found == nullptr ? 0 : bounded(found->name, found->ne[0]);
  };
  geometry.ff_in = std::max(geometry.ff_in, rows(layer, "ffn_up") + rows(layer, "ffn_gate"));
  geometry.ff_out = std::max(geometry.ff_out, columns("ffn_down"));
  const std::int64_t in =
      rows(layer, "ffn_up_exps") + rows(layer, "ffn_gate_exps") + rows(layer, "ffn_gate_up_exps");
  geometry.experts_in = std::max(geometry.experts_in, in * geometry.n_experts_used);
  geometry.experts_out =
      std::max(geometry.experts_out, columns("ffn_down_exps") * geometry.n_experts_used);
}

// Like libllama's hparams.n_embd_r() and n_embd_s().
void Reader::read_state(ModelGeometry& geometry) {
  const std::int64_t n_heads = number_at("%s.attention.head_count", 0);
  const std::int64_t conv = number("%s.ssm.conv_kernel");
  const std::int64_t inner = number("%s.ssm.inner_size");
  const std::int64_t state = number("%s.ssm.state_size");
  const std::int64_t shortconv = number("%s.shortconv.l_cache");
  const std::int64_t kda = number("%s.kda.head_dim");
  if (shortconv > 0) {
    geometry.state_channels = 3 * n_embd_;
    geometry.state_numbers = n_embd_ * (shortconv - 1);
  } else if (kda > 0) {
    geometry.state_channels = 3 * n_heads * kda;
    geometry.state_numbers =
        (conv > 0 ? conv - 1 : 3) * geometry.state_channels + kda * kda * n_heads;
  } else {
    geometry.state_channels = inner + 2 * number("%s.ssm.group_count") * state;
    geometry.state_numbers = (conv > 0 ? conv - 1 : 0) * geometry.state_channels + state * inner;
  }
  constexpr std::int64_t kStateMax = std::int64_t{1} << 36;
  if (geometry.state_channels > kDimensionMax || geometry.state_numbers > kStateMax) {
    fault_ = format_text("the state of a recurrent layer has {} numbers", geometry.state_numbers);
  }
}

void Reader::read_vocabulary(ModelGeometry& geometry) {
  const GgufTensor* embeddings = model_.find_tensor("token_embd.weight");
  const auto n_tokens = static_cast<std::int64_t>(model_.array_size("tokenizer.ggml.tokens"));
  geometry.n_vocab =
      bounded("the vocabulary", embeddings != nullptr ? embeddings->ne[1] : n_tokens);
  geometry.n_merges = static_cast<std::int64_t>(model_.array_size("tokenizer.ggml.merges"));
  geometry.is_bpe = model_.text("tokenizer.ggml.model") == "gpt2";
}

Result<ModelGeometry> Reader::read() {
  ModelGeometry geometry;
  geometry.architecture = model_.architecture();
  if (std::ranges::contains(kWithoutCache, geometry.architecture)) {
    return fail(Code::kUnsupported,
                format_text("models of architecture {} have no KV cache", geometry.architecture));
  }
  if (std::ranges::contains(kOtherCaches, geometry.architecture)) {
    return fail(Code::kUnsupported,
                format_text("the caches of architecture {} are of a kind whose size we do not know",
                            geometry.architecture));
  }
  geometry.n_layers = number("%s.block_count");
  geometry.n_embd = n_embd_ = number("%s.embedding_length");
  geometry.n_experts = number("%s.expert_count");
  geometry.n_experts_used = number("%s.expert_used_count");
  geometry.n_tensors = static_cast<std::int64_t>(model_.tensors().size());
  // Not bounded like tensor dimensions: some models claim ten million tokens.
  const auto context = [&](std::string_view key) {
    return std::clamp<std::int64_t>(model_.integer(key).value_or(0), 0, INT32_MAX);
  };
  geometry.n_ctx_train = context("%s.context_length");
  geometry.n_ctx_original = context("%s.rope.scaling.original_context_length");
  if (geometry.n_layers > kLayersMax || geometry.n_experts_used > kLayersMax) {
    return fail(Code::kCorrupt, format_text("the model says it has {} layers and {} experts",
                                            geometry.n_layers, geometry.n_experts_used));
  }
  read_vocabulary(geometry);

  // The last layers of some models use the caches of earlier layers.
  std::int64_t n_own_caches = geometry.n_layers - number("%s.attention.shared_kv_layers");
  if (geometry.architecture == "gemma3n") n_own_caches = 20;  // as in libllama
  for (std::int64_t layer = 0; layer < geometry.n_layers; ++layer) {
    if (is_recurrent(layer)) ++geometry.n_recurrent_layers;
    read_feed_forward(geometry, layer);
    const std::optional<AttentionLayer> attention = read_attention(layer);
    if (attention && layer < n_own_caches) geometry.attention.push_back(*attention);
  }
  if (geometry.n_recurrent_layers > 0) read_state(geometry);
  // llama4 and gemma2 have windows whatever their files say. libllama does not use those of phi3.
  geometry.has_window = geometry.architecture == "llama4" || geometry.architecture == "gemma2" ||
                        (geometry.architecture != "phi3" &&
                         model_.integer("%s.attention.sliding_window").value_or(0) > 0);
  if (!fault_.empty())
    return fail(Code::kCorrupt, format_text("the model's header is damaged: {}", fault_));
  if (geometry.n_embd == 0 || geometry.n_vocab == 0) {
    return fail(Code::kCorrupt, "the model's header is damaged: it has no embeddings");
  }
  if (geometry.attention.empty()) {
    return fail(Code::kUnsupported, format_text("the model (architecture {}) has no attention, so "
                                                "that there is no KV cache",
                                                geometry.architecture));
  }
  return geometry;
}

}  // namespace

Result<ModelGeometry> read_geometry(const GgufModel& model) { return Reader(model).read(); }

}  // namespace slipstream
