#include "engine/embedding/ranking_model.h"

#include <utility>

namespace slipstream {

Result<std::unique_ptr<RankingModel>> RankingModel::load(const ReadingOptions& options) {
  Result<std::unique_ptr<ReadingModel>> model =
      ReadingModel::load(options, ReadingModel::Reads::kRanks);
  if (!model) return std::unexpected(model.error());
  return std::unique_ptr<RankingModel>(new RankingModel(std::move(*model)));
}

Result<std::vector<float>> RankingModel::rank(std::string_view query,
                                              std::span<const std::string> texts,
                                              const std::stop_token& stop) {
  std::vector<std::vector<Token>> pairs;
  for (const std::string& text : texts) {
    Result<std::vector<Token>> tokens = pairs_.cut(query, text);
    if (!tokens) return std::unexpected(tokens.error());
    pairs.push_back(std::move(*tokens));
  }
  const Result<std::vector<ReadingModel::Row>> rows = model_->read(pairs, stop);
  if (!rows) return std::unexpected(rows.error());
  std::vector<float> ranks;
  for (const ReadingModel::Row& row : *rows) ranks.push_back(row.front());
  return ranks;
}

}  // namespace slipstream
