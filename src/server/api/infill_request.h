// InfillRequest: the body of llama-server's POST /infill.
//
//   {"input_prefix", "input_suffix", "prompt", "input_extra": [{"filename", "text"}], "n_predict", ...}
//
// Threads: plain data. Errors: 400 that names the field.
#pragma once

#include "server/api/fill_in.h"
#include "server/api/generation_options.h"

namespace slipstream {

struct InfillRequest {
  GenerationOptions options;
  FillIn fill;
  bool only_reads = false;  // "n_predict": 0: computes the prompt, for the next request
};

[[nodiscard]] ApiResult<InfillRequest> read_infill_request(Json& body);

}  // namespace slipstream
