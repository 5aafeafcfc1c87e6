// Embedder: turns texts into vectors, in a context of its own beside the one that generates.
//
// The weights are shared. The context holds one text, uncompressed. Vectors come from the model's
// own pooling (the mean over the tokens if it names none) and are scaled to length 1.
//
// Threads: any thread may call embed(); one computes at a time.
// Errors:  create(): kOutOfMemory; kUnsupported for a model that ranks texts.
//          embed(): kInvalidArgument for no tokens, unknown tokens or too many; kUnsupported with
//          libllama's status.
#pragma once

#include <llama-cpp.h>

#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "engine/request.h"

namespace slipstream {

class Embedder {
 public:
  // n_tokens_max: limit for one text. n_threads: 0 means one per core. The model must outlive this.
  [[nodiscard]] static Result<std::unique_ptr<Embedder>> create(llama_model* model,
                                                                int n_tokens_max, int n_threads);
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  [[nodiscard]] Result<std::vector<float>> embed(std::span<const Token> tokens);
  [[nodiscard]] int n_tokens_max() const { return n_tokens_max_; }
  [[nodiscard]] int n_dimensions() const { return n_dimensions_; }

 private:
  Embedder(llama_context_ptr context, int n_tokens_max, int n_dimensions, int n_vocab)
      : n_tokens_max_(n_tokens_max),
        n_dimensions_(n_dimensions),
        n_vocab_(n_vocab),
        context_(std::move(context)) {}

  const int n_tokens_max_;
  const int n_dimensions_;
  const int n_vocab_;
  Mutex mutex_;
  const llama_context_ptr context_ SLIP_GUARDED_BY(mutex_);
};

}  // namespace slipstream
