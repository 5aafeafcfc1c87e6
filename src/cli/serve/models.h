// What `slipstream serve` was told to serve, as models that the server's pool can load and, with
// --hub, the library of all other models.
//
// Threads: thread-safe.
// Errors:  kInvalidArgument for names; those of kv_choice.h for a model that could never fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "cli/draft_model.h"
#include "cli/kv_choice.h"
#include "cli/serve/reading.h"
#include "cli/serve/serve.h"
#include "server/model_pool.h"

namespace slipstream::serve {

struct NamedModel {
  std::string name;
  std::string path;
  bool is_pinned = false;
  std::optional<DraftPlan> draft = {};
  std::string projector = {};  // for images; empty: none
};

// How many models share the memory. A model of the hub should fit beside another.
[[nodiscard]] int n_models(const Options& options);
// What every model's context has in common; n_ctx 0 is the default.
[[nodiscard]] ContextShape context_shape(const Options& options);

// How a model is loaded: one that writes, with a KV cache, or one that only reads.
struct ModelPlan {
  std::variant<KvPlan, ReadingPlan> how;

  [[nodiscard]] std::uint64_t total_bytes() const;
  [[nodiscard]] int n_context() const;
  [[nodiscard]] std::string kv() const;  // empty: it only reads
};
// How the model would be loaded if all models together may take this many bytes.
// Its draft model takes a part of them. Reads headers only.
[[nodiscard]] Result<ModelPlan> plan_model(const Options& options, const NamedModel& model,
                                           std::uint64_t bytes_max);
[[nodiscard]] PooledModel pooled_model(const Options& options, const NamedModel& model,
                                       const ModelPlan& plan);

// Decides what fits before anyone waits for a model.
[[nodiscard]] Result<ModelPoolOptions> models_to_serve(const Options& options);

}  // namespace slipstream::serve
