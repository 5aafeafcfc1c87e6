// Models that a search uses, as the command line names them: GGUF files or installed models, behind
// the interfaces of the index.
//
// Threads: thread-safe. Errors: those of finding and loading a model.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "retrieval/dense/text_embedder.h"
#include "retrieval/dense/text_ranker.h"

namespace slipstream::search {

// n_threads: 0: one per core.
[[nodiscard]] Result<std::unique_ptr<TextEmbedder>> open_embedder(const std::string& model,
                                                                  int n_threads);
[[nodiscard]] Result<std::unique_ptr<TextRanker>> open_ranker(const std::string& model,
                                                              int n_threads);

}  // namespace slipstream::search
