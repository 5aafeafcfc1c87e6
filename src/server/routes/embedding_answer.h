// prepare_vectors(): texts as vectors, for the routes of each API that has them.
//
// Threads: on a worker. Errors: ApiErrors that name the field.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "server/api/embedding_request.h"
#include "server/client.h"
#include "server/routes/prepared_answer.h"
#include "server/served_model.h"

namespace slipstream {

using Vectors = std::vector<std::vector<float>>;
// The body of the answer. Called on a worker.
using VectorsText = std::function<std::string(const Vectors& vectors, std::size_t n_tokens)>;

[[nodiscard]] Prepared prepare_vectors(ServedModel& model, EmbeddingRequest request,
                                       const Client& client, VectorsText text);

}  // namespace slipstream
