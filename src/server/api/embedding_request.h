// EmbeddingRequest: the body of POST /v1/embeddings.
//
// Threads: plain data. Errors: 400 that names the field.
#pragma once

#include <optional>
#include <vector>

#include "server/api/prompts.h"

namespace slipstream {

struct EmbeddingRequest {
  std::vector<Prompt> inputs;
  bool as_base64 = false;                         // the bytes of the floats instead of numbers
  std::optional<std::int64_t> n_dimensions = {};  // the first ones, at length 1 again
};

[[nodiscard]] ApiResult<EmbeddingRequest> read_embedding_request(const Json& body);

}  // namespace slipstream
