// ServedReader: what a served model has for /v1/embeddings or /v1/rerank: a reader, its thread, and
// what it reads texts with.
//
// Threads: thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "engine/embedding/ranking_pairs.h"
#include "engine/embedding/reading_model.h"
#include "server/reading/reading_worker.h"

namespace slipstream {

class ServedReader {
 public:
  // Beside an engine. REQUIRES: the vocabulary and the reader's model outlive it.
  ServedReader(const Vocabulary& vocabulary, std::unique_ptr<TextReader> reader)
      : vocabulary_(vocabulary), own_reader_(std::move(reader)), worker_(*own_reader_) {}
  // A model that only reads.
  explicit ServedReader(std::unique_ptr<ReadingModel> model)
      : model_(std::move(model)), vocabulary_(model_->vocabulary()), worker_(model_->reader()) {
    if (reader().ranks()) pairs_.emplace(*model_);
  }

  [[nodiscard]] const TextReader& reader() const {
    return own_reader_ ? *own_reader_ : model_->reader();
  }
  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }
  [[nodiscard]] ReadingWorker& worker() { return worker_; }
  // Null if it makes vectors.
  [[nodiscard]] const RankingPairs* pairs() const { return pairs_ ? &*pairs_ : nullptr; }
  // Null beside an engine, which has the model.
  [[nodiscard]] const ReadingModel* model() const { return model_.get(); }

 private:
  const std::unique_ptr<ReadingModel> model_ = {};
  const Vocabulary& vocabulary_;
  const std::unique_ptr<TextReader> own_reader_ = {};
  std::optional<RankingPairs> pairs_ = {};
  ReadingWorker worker_;  // must be the last member: it uses all others
};

}  // namespace slipstream
