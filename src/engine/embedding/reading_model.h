// ReadingModel: a GGUF model that only reads. Every text becomes one row of numbers: a vector, or a
// rank.
//
// With our plugin its kernels multiply (docs/products.md); without it stock's do.
//
// Threads: thread-safe; one thread computes at a time.
// Errors:  load(): kNotFound, kOutOfMemory; kUnsupported for a model that cannot do it, with
//          libllama's reason. read(): those of text_reader.h.
#pragma once

#include <llama-cpp.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/embedding/text_reader.h"
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
  // What is asked of it; kAny: whatever it does.
  enum class Reads { kVectors, kRanks, kAny };
  [[nodiscard]] static Result<std::unique_ptr<ReadingModel>> load(const ReadingOptions& options,
                                                                  Reads reads);

  using Row = TextReader::Row;
  // A row for each text, in their order.
  [[nodiscard]] Result<std::vector<Row>> read(TextReader::Texts texts,
                                              const std::stop_token& stop = {}) {
    return reader_->read(texts, stop);
  }

  [[nodiscard]] TextReader& reader() const { return *reader_; }
  [[nodiscard]] const llama_model* model() const { return model_.get(); }
  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }
  [[nodiscard]] int n_tokens_max() const { return reader_->n_tokens_max(); }
  [[nodiscard]] int n_columns() const { return reader_->n_columns(); }
  // What the model's file calls a template, such as "rerank"; empty: it has none of that name.
  [[nodiscard]] std::string text_template(const char* name) const;

 private:
  ReadingModel(std::optional<TurboDevice> turbo, llama_model_ptr model,
               std::unique_ptr<TextReader> reader, Vocabulary vocabulary);

  std::optional<TurboDevice> turbo_;  // outlives what is on it
  llama_model_ptr model_;
  Vocabulary vocabulary_;
  std::unique_ptr<TextReader> reader_;  // destroyed before the model
};

// The beginning of a text, valid UTF-8, with more bytes than so many tokens stand for.
[[nodiscard]] std::string beginning_of(std::string_view text, int n_tokens);

// The tokens of a text, at most so many: its end is cut off, and the token that ends every text of
// the model's training stays.
[[nodiscard]] Result<std::vector<Token>> tokens_of_beginning(const Vocabulary& vocabulary,
                                                             std::string_view text,
                                                             int n_tokens_max);

}  // namespace slipstream
