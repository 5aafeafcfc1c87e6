// What `slipstream serve` was told to serve, as models that the server's pool can load.
//
// Threads: thread-safe. Errors: kInvalidArgument for names; as of kv_choice.h for a model that
// could never fit.
#pragma once

#include "cli/serve/serve.h"
#include "server/model_pool.h"

namespace slipstream::serve {

// Reads headers only; what fits is decided here, before anybody waits for it.
[[nodiscard]] Result<ModelPoolOptions> models_to_serve(const Options& options);

}  // namespace slipstream::serve
