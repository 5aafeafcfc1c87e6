// Model: the weights and one context on them, with the KV cache in the scheme that was asked for.
//
// A turbo... scheme needs our plugin, which is loaded into ggml's registry like any backend; with a
// stock type (f16, q8_0, q4_0) it is not even looked for. What the turbo device cannot compress
// stays f16 and correct.
//
// Threads: owned by one thread at a time; vocabulary-only calls on model() are thread-safe.
// Errors:  load(): kNotFound, kOutOfMemory with what libllama said, kCancelled; kUnsupported, also
//          for models that do not generate text (encoders, diffusion).
//          change_kv(): kInvalidArgument, kOutOfMemory.
#pragma once

#include <llama-cpp.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "engine/model/turbo_device.h"

namespace slipstream {

struct ModelOptions {
  std::filesystem::path path;
  std::string kv = "f16";
  std::filesystem::path plugin;  // for turbo... and for streamed experts
  std::string experts =
      {};  // how they are streamed, as the plugin reads it ("4G"); empty: they are not
  // What was fitted to its keys (docs/formats/key-profile.md). GGML_TURBO_PROFILE goes before.
  std::filesystem::path key_profile = {};
  int n_cells = 4096;
  int n_sequences_max = 1;  // ids
  int n_step_tokens_max = 512;
  int n_outputs_max = 1;  // tokens of a step whose logits are wanted
  int n_threads = 0;      // 0: one per core that we may use
  // Whether sequences may share cells; else each has its own part of n_cells.
  bool shares_cells = true;
  // Compressed caches need it, and so do q8_0 and q4_0.
  bool has_flash_attention = true;
  // From 0 to 1 while weights are read. False gives up.
  std::function<bool(float)> on_progress;
};

// ggml's backends, and libllama's log into ours; at the first call only. load() does it.
void load_backends();

// GGML_TURBO_PROFILE, even where that names none; else what was asked for.
[[nodiscard]] std::filesystem::path effective_key_profile(const std::filesystem::path& asked);

// As many as were asked for; 0: one per core, or as many as our control group may run at a time.
[[nodiscard]] int threads_to_use(int n_asked);

class Model {
 public:
  [[nodiscard]] static Result<Model> load(const ModelOptions& options);

  // A new, empty context in another scheme on the same weights. One that was loaded on the turbo
  // device can have any; others none of turbo...: their layers are not on it. After an
  // error there is no context, and the model is good for nothing but another change.
  [[nodiscard]] Result<void> change_kv(const std::string& kv);
  // From the next change on.
  void change_key_profile(const std::filesystem::path& file) { options_.key_profile = file; }

  // Null where neither the scheme nor streamed experts asked for one.
  [[nodiscard]] TurboDevice* turbo() { return turbo_ ? &*turbo_ : nullptr; }
  [[nodiscard]] llama_model* model() const { return model_.get(); }
  [[nodiscard]] llama_context* context() const { return context_.get(); }
  [[nodiscard]] const llama_vocab* vocab() const { return llama_model_get_vocab(model_.get()); }
  [[nodiscard]] const std::filesystem::path& path() const { return options_.path; }
  [[nodiscard]] const std::string& kv() const { return options_.kv; }
  // Empty where it has no influence.
  [[nodiscard]] std::filesystem::path key_profile() const;
  // Cells of the KV cache: libllama may round the number up.
  [[nodiscard]] int n_cells() const { return static_cast<int>(llama_n_ctx(context_.get())); }
  // Tokens of a step whose logits can be had.
  [[nodiscard]] int n_outputs_max() const {
    return std::max(options_.n_outputs_max, options_.n_sequences_max);
  }
  // A model whose state cannot be cut at any token (Mamba, RWKV, and hybrids with them).
  [[nodiscard]] bool has_recurrent_state() const {
    return llama_model_is_recurrent(model_.get()) || llama_model_is_hybrid(model_.get());
  }

 private:
  Model(const ModelOptions& options, std::optional<TurboDevice> turbo, llama_model_ptr model,
        llama_context_ptr context)
      : options_(options),
        turbo_(std::move(turbo)),
        model_(std::move(model)),
        context_(std::move(context)) {
    options_.on_progress = nullptr;  // it may refer to what is gone
  }

  ModelOptions options_;
  std::optional<TurboDevice> turbo_;  // outlives what is on it
  llama_model_ptr model_;
  llama_context_ptr context_;  // before the model in destruction
};

}  // namespace slipstream
