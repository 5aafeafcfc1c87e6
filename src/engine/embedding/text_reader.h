// TextReader: a context that only reads. Every text becomes one row of numbers: a vector, or ranks.
//
// Several short texts are computed together, in one batch. Each text sees only itself, but attention
// computes all of a batch against all of it: larger batches cost more than they save, so a batch has
// kTokensOfBatch tokens, or one longer text. Nothing is compressed. Rows come from the model's own
// pooling, or from the mean over the tokens if it names none.
//
// Threads: thread-safe; one thread computes at a time.
// Errors:  create(): kOutOfMemory. check(): kInvalidArgument for no tokens, unknown tokens or too
//          many. read(), read_batch(): the same; kCancelled; kUnsupported with libllama's status.
#pragma once

#include <llama-cpp.h>

#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "engine/request.h"

namespace slipstream {

class TextReader {
 public:
  static constexpr std::size_t kTextsOfBatch = 64;  // 1 for models with a recurrent state
  static constexpr std::size_t kTokensOfBatch = 512;

  // n_tokens_max: limit for one text. n_threads: 0 means one per core. The model must outlive this.
  [[nodiscard]] static Result<std::unique_ptr<TextReader>> create(llama_model* model,
                                                                  int n_tokens_max, int n_threads);

  using Row = std::vector<float>;
  using Texts = std::span<const std::vector<Token>>;
  [[nodiscard]] Result<void> check(std::span<const Token> text) const;
  // A row for each text, in their order. On a thread of its own.
  [[nodiscard]] Result<std::vector<Row>> read(Texts texts, const std::stop_token& stop = {});
  // The same for one batch, on this thread. REQUIRES: the texts are checked and have room.
  [[nodiscard]] Result<std::vector<Row>> read_batch(Texts texts);
  // Whether a batch with so many texts and tokens has room for another text.
  [[nodiscard]] bool has_room(std::size_t n_texts, std::size_t n_tokens,
                              std::size_t n_further) const {
    return n_texts == 0 || (n_texts < n_texts_max_ && n_tokens + n_further <= kTokensOfBatch);
  }

  [[nodiscard]] int n_tokens_max() const { return n_tokens_max_; }
  [[nodiscard]] int n_columns() const { return n_columns_; }
  // Whether rows are ranks.
  [[nodiscard]] bool ranks() const { return ranks_; }

 private:
  TextReader(llama_context_ptr context, int n_tokens_max);

  const bool ranks_;
  const int n_tokens_max_;
  const int n_columns_;
  const int n_vocab_;
  const std::size_t n_texts_max_;  // of a batch
  Mutex mutex_;
  const llama_context_ptr context_ SLIP_GUARDED_BY(mutex_);
};

}  // namespace slipstream
