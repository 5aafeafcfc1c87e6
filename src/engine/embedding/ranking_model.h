// RankingModel: how well texts answer a query, by a GGUF model that reads both together (a
// reranker, such as bge-reranker or jina-reranker; GGUF calls its pooling "rank").
//
// Slow and good: every pair is read for every query. So it orders the few best that a search has
// found, and finds nothing by itself.
//
// Threads: thread-safe; one thread computes at a time. Errors: as ReadingModel's.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/embedding/ranking_pairs.h"
#include "engine/embedding/reading_model.h"

namespace slipstream {

class RankingModel {
 public:
  [[nodiscard]] static Result<std::unique_ptr<RankingModel>> load(const ReadingOptions& options);

  // A number for each text, in their order: the more, the better. They compare within one query.
  [[nodiscard]] Result<std::vector<float>> rank(std::string_view query,
                                                std::span<const std::string> texts,
                                                const std::stop_token& stop = {});

 private:
  explicit RankingModel(std::unique_ptr<ReadingModel> model)
      : model_(std::move(model)), pairs_(*model_) {}

  std::unique_ptr<ReadingModel> model_;
  RankingPairs pairs_;
};

}  // namespace slipstream
