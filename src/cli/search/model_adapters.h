// The engine's models behind the interfaces of the index, which knows no engine.
//
// Threads: thread-safe. Errors: those of the models.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/embedding/embedding_model.h"
#include "engine/embedding/ranking_model.h"
#include "retrieval/dense/text_embedder.h"
#include "retrieval/dense/text_ranker.h"

namespace slipstream::search {

class ModelEmbedder : public TextEmbedder {
 public:
  explicit ModelEmbedder(std::unique_ptr<EmbeddingModel> model) : model_(std::move(model)) {}
  [[nodiscard]] const std::string& id() const override { return model_->id(); }
  [[nodiscard]] int n_dimensions() const override { return model_->n_dimensions(); }
  Result<std::vector<std::vector<float>>> embed(std::span<const std::string> texts,
                                                const std::stop_token& stop) override {
    return model_->embed(texts, stop);
  }

 private:
  std::unique_ptr<EmbeddingModel> model_;
};

class ModelRanker : public TextRanker {
 public:
  explicit ModelRanker(std::unique_ptr<RankingModel> model) : model_(std::move(model)) {}
  Result<std::vector<float>> rank(std::string_view query,
                                  std::span<const std::string> texts) override {
    return model_->rank(query, texts);
  }

 private:
  std::unique_ptr<RankingModel> model_;
};

}  // namespace slipstream::search
