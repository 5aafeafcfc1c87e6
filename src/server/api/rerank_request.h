// RerankRequest: the body of POST /v1/rerank, in the forms of Jina, Cohere, llama-server and
// Hugging Face's text-embeddings-inference.
//
// Threads: plain data. Errors: 400 that names the field.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/api/json_fields.h"

namespace slipstream {

struct RerankRequest {
  std::string query;
  std::vector<std::string> documents;
  std::size_t n_top = 0;  // the best ones; 0: all
  bool returns_documents = false;
  bool has_texts = false;  // "texts" instead of "documents": the answer is a plain list of scores
};

[[nodiscard]] ApiResult<RerankRequest> read_rerank_request(const Json& body);

}  // namespace slipstream
