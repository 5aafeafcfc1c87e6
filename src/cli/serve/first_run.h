// What to serve where the command line does not say all of it: the first time, people have no model.
//
// Models that are named and not installed are offered (cli/hub/offer_pull.h). A --model without a
// name is MODEL, as in llama-server. With no model at all the web app offers some, as with --hub;
// unasked only on a loopback address, because clients then fill this machine's disk.
//
// Threads: call from one thread, before anything listens.
// Errors:  those of offer_pull.h.
#pragma once

#include "base/result.h"
#include "cli/serve/serve.h"

namespace slipstream::serve {

// may_install: false where another process has done it, as the one that supervises.
[[nodiscard]] Result<Options> with_models(Options options, bool may_install);

// Whether clients choose the first model. They need to be told where.
[[nodiscard]] bool has_no_model(const Options& options);

}  // namespace slipstream::serve
