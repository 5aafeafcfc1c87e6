// EmbeddingModel: texts as vectors, by a GGUF model of its own (all-MiniLM, bge, nomic, ...). Texts
// of like meaning have vectors of like direction.
//
// Pooling is the model's own, the mean over the tokens if it names none. Vectors have length 1. Of
// a text longer than ReadingOptions::n_tokens_max its beginning counts.
//
// Threads: thread-safe; one thread computes at a time.
// Errors:  as ReadingModel's; load(): also those of reading the file's header.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/embedding/reading_model.h"

namespace slipstream {

class EmbeddingModel {
 public:
  [[nodiscard]] static Result<std::unique_ptr<EmbeddingModel>> load(const ReadingOptions& options);

  // A vector for each text, in their order. A text without tokens has a vector of zeros.
  [[nodiscard]] Result<std::vector<std::vector<float>>> embed(std::span<const std::string> texts,
                                                              const std::stop_token& stop = {});
  [[nodiscard]] int n_dimensions() const { return model_->n_columns(); }
  // Of the model's file and of what is read of a text: vectors are comparable if it is the same.
  [[nodiscard]] const std::string& id() const { return id_; }

 private:
  EmbeddingModel(std::unique_ptr<ReadingModel> model, std::string id)
      : model_(std::move(model)), id_(std::move(id)) {}

  std::unique_ptr<ReadingModel> model_;
  std::string id_;
};

}  // namespace slipstream
