// What `slipstream serve` was told to serve, as models that the server's pool can load; and, with
// --hub, the library of all others.
//
// Threads: thread-safe.
// Errors:  kInvalidArgument for names; as of kv_choice.h for a model that could never fit.
#pragma once

#include "cli/kv_choice.h"
#include "cli/serve/serve.h"
#include "server/model_pool.h"

namespace slipstream::serve {

struct NamedModel {
  std::string name;
  std::string path;
  bool is_pinned = false;
};

// How it would be loaded, if all models may take so many bytes. Reads headers only.
[[nodiscard]] Result<KvPlan> plan_model(const Options& options, const std::string& path,
                                        std::uint64_t bytes_max);
[[nodiscard]] PooledModel pooled_model(const Options& options, const NamedModel& model,
                                       const KvPlan& plan);

// What fits is decided here, before anybody waits for it.
[[nodiscard]] Result<ModelPoolOptions> models_to_serve(const Options& options);

}  // namespace slipstream::serve
