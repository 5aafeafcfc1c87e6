// Model: the weights and one context, with the KV cache in the requested scheme.
//
// A turbo... scheme needs our plugin, which is loaded into ggml's registry like any backend. With a
// stock type (f16, q8_0, q4_0) the plugin is not even looked for. What the turbo device cannot
// compress stays f16 and correct.
//
// Threads: owned by one thread at a time; vocabulary-only calls on model() are thread-safe.
// Errors:  load(): kNotFound; kOutOfMemory with libllama's message; kCancelled; kUnsupported, also
//          for models that do not generate text (encoders, diffusion); those of spread.h.
//          change_kv(): kInvalidArgument, kOutOfMemory.
#pragma once

#include <llama-cpp.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "engine/model/rope_scaling.h"
#include "engine/model/turbo_device.h"
#include "engine/rpc/spread.h"

namespace slipstream {

struct ModelOptions {
  std::filesystem::path path;
  std::string kv = "f16";
  std::filesystem::path plugin;  // for turbo..., streamed experts, products and other machines
  // How experts are streamed, as the plugin reads it ("4G"); empty: not at all.
  std::string experts = {};
  // How much of the KV cache's codes stays in memory, as the plugin reads it ("4G,dir=DIR"), with a
  // scheme that limits what is read; empty: all of them.
  std::string kv_memory = {};
  // Whether the plugin's own kernels read prompts. Weights are then mapped from the file as they are
  // (docs/products.md).
  bool has_products = false;
  // Layers that other machines compute. Weights are then as they are in the file, everywhere.
  Spread spread = {};
  // Whether stock may copy weights into layouts of its own.
  bool is_repacked = true;
  // Fitted to the model's keys (docs/formats/key-profile.md). GGML_TURBO_PROFILE overrides it.
  std::filesystem::path key_profile = {};
  RopeScaling rope = {};
  int n_cells = 4096;
  int n_sequences_max = 1;  // sequence ids
  int n_step_tokens_max = 512;
  int n_outputs_max = 1;  // tokens of a step whose logits are needed
  int n_threads = 0;      // 0: one per core that the process may use
  // Whether sequences may share cells; if not, each has its own part of n_cells.
  bool shares_cells = true;
  // Compressed caches, q8_0 and q4_0 need it.
  bool has_flash_attention = true;
  // Whether the layer that predicts a token further is loaded too (speculation/mtp_layer.h).
  bool has_mtp = false;
  // Called with 0 to 1 while weights are read. Returning false cancels loading.
  std::function<bool(float)> on_progress;
};

// Loads ggml's backends and redirects libllama's log, at the first call only. load() calls it.
void load_backends();

// GGML_TURBO_PROFILE if it is set, even if it is empty; otherwise `asked`.
[[nodiscard]] std::filesystem::path effective_key_profile(const std::filesystem::path& asked);

// n_asked, if it is not 0. Otherwise one per core, or fewer if our control group allows fewer.
[[nodiscard]] int threads_to_use(int n_asked);

class Model {
 public:
  [[nodiscard]] static Result<Model> load(const ModelOptions& options);

  // Makes a new, empty context in another scheme on the same weights. A model loaded on the turbo
  // device can have any scheme; others cannot have turbo..., because their layers are not on it.
  // REQUIRES: !is_spread().
  // After an error there is no context, and only another change is allowed.
  [[nodiscard]] Result<void> change_kv(const std::string& kv);
  // A context of that layer alone, in the same scheme, with as many cells. Errors as of load().
  // REQUIRES: has_mtp().
  [[nodiscard]] Result<llama_context_ptr> make_mtp_context(int n_sequences) const;
  // Takes effect with the next change_kv().
  void change_key_profile(const std::filesystem::path& file) { options_.key_profile = file; }

  // Null if neither the scheme, streamed experts, products nor other machines needed one.
  [[nodiscard]] TurboDevice* turbo() { return turbo_ ? &*turbo_ : nullptr; }
  [[nodiscard]] llama_model* model() const { return model_.get(); }
  [[nodiscard]] llama_context* context() const { return context_.get(); }
  [[nodiscard]] const llama_vocab* vocab() const { return llama_model_get_vocab(model_.get()); }
  // Whether other machines have layers.
  [[nodiscard]] bool is_spread() const { return watch_ != nullptr; }
  [[nodiscard]] const std::filesystem::path& path() const { return options_.path; }
  [[nodiscard]] const std::string& kv() const { return options_.kv; }
  // Empty if it has no effect.
  [[nodiscard]] std::filesystem::path key_profile() const;
  [[nodiscard]] const RopeScaling& rope() const { return options_.rope; }
  [[nodiscard]] bool has_mtp() const { return options_.has_mtp; }
  // Cells of the KV cache; libllama may round the number up.
  [[nodiscard]] int n_cells() const { return static_cast<int>(llama_n_ctx(context_.get())); }
  // How many tokens of a step can have logits.
  [[nodiscard]] int n_outputs_max() const {
    return std::max(options_.n_outputs_max, options_.n_sequences_max);
  }
  // Whether the state cannot be cut at arbitrary tokens (Mamba, RWKV, and hybrids with them).
  [[nodiscard]] bool has_recurrent_state() const {
    return llama_model_is_recurrent(model_.get()) || llama_model_is_hybrid(model_.get());
  }

 private:
  Model(const ModelOptions& options, std::optional<TurboDevice> turbo, llama_model_ptr model,
        llama_context_ptr context, std::unique_ptr<RpcWatch> watch)
      : options_(options),
        turbo_(std::move(turbo)),
        model_(std::move(model)),
        context_(std::move(context)),
        watch_(std::move(watch)) {
    options_.on_progress = nullptr;  // it may refer to objects that no longer exist
  }

  ModelOptions options_;
  std::optional<TurboDevice> turbo_;  // outlives what is on it
  llama_model_ptr model_;
  llama_context_ptr context_;        // destroyed before the model
  std::unique_ptr<RpcWatch> watch_;  // of the machines in options_.spread; null if there are none
};

}  // namespace slipstream
