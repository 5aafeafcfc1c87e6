// ReadingModel: a GGUF model that only reads. Every text becomes one row of numbers: a vector, or a
// rank.
//
// Several short texts are computed together, up to n_tokens_max tokens: each text sees only itself,
// but attention computes all of a batch against all of it, so that larger batches are slower.
// With our plugin its kernels multiply (docs/products.md); without it stock's do.
//
// Threads: thread-safe; one thread computes at a time.
// Errors:  load(): kNotFound, kOutOfMemory; kUnsupported for a model that cannot do it, with
//          libllama's reason. read(): kInvalidArgument for tokens that the model does not know or
//          too many; kCancelled; kUnsupported with libllama's status.
#pragma once

#include <llama-cpp.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "engine/model/turbo_device.h"
#include "engine/text/vocabulary.h"

namespace slipstream {

struct ReadingOptions {
  std::filesystem::path path;
  std::filesystem::path plugin = {};  // whose kernels multiply; empty: stock's do
  int n_threads = 0;                  // 0: one per core
  // Of one text. Less if the model was trained on less.
  int n_tokens_max = 512;
};

class ReadingModel {
 public:
  enum class Reads { kVectors, kRanks };
  [[nodiscard]] static Result<std::unique_ptr<ReadingModel>> load(const ReadingOptions& options,
                                                                  Reads reads);

  using Row = std::vector<float>;
  // A row for each text, in their order.
  [[nodiscard]] Result<std::vector<Row>> read(std::span<const std::vector<Token>> texts,
                                              const std::stop_token& stop = {});

  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }
  [[nodiscard]] int n_tokens_max() const { return n_tokens_max_; }
  [[nodiscard]] int n_columns() const { return n_columns_; }
  // What the model's file calls a template, such as "rerank"; empty: it has none of that name.
  [[nodiscard]] std::string text_template(const char* name) const;

 private:
  ReadingModel(std::optional<TurboDevice> turbo, llama_model_ptr model, llama_context_ptr context,
               Vocabulary vocabulary, int n_tokens_max, int n_columns);
  [[nodiscard]] Result<void> read_batch(std::span<const std::vector<Token>> texts,
                                        std::span<Row> rows);

  std::optional<TurboDevice> turbo_;  // outlives what is on it
  llama_model_ptr model_;
  Vocabulary vocabulary_;
  const int n_tokens_max_;
  const int n_columns_;
  Mutex mutex_;
  llama_context_ptr context_ SLIP_GUARDED_BY(mutex_);  // destroyed before the model
};

// The beginning of a text, valid UTF-8, with more bytes than so many tokens stand for.
[[nodiscard]] std::string beginning_of(std::string_view text, int n_tokens);

// The tokens of a text, at most so many: its end is cut off, and the token that ends every text of
// the model's training stays.
[[nodiscard]] Result<std::vector<Token>> tokens_of_beginning(const Vocabulary& vocabulary,
                                                             std::string_view text,
                                                             int n_tokens_max);

}  // namespace slipstream
