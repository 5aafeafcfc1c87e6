#include "engine/embedding/embedding_model.h"

#include <utility>

#include "base/format.h"
#include "engine/embedding/unit_vector.h"
#include "engine/model/model_fingerprint.h"

namespace slipstream {
Result<std::unique_ptr<EmbeddingModel>> EmbeddingModel::load(const ReadingOptions& options) {
  Result<std::unique_ptr<ReadingModel>> model =
      ReadingModel::load(options, ReadingModel::Reads::kVectors);
  if (!model) return std::unexpected(model.error());
  const Result<Fingerprint> fingerprint = fingerprint_of_model(options.path);
  if (!fingerprint) return std::unexpected(fingerprint.error());
  std::string id = format_text("{}-{}", to_hex(*fingerprint), (*model)->n_tokens_max());
  return std::unique_ptr<EmbeddingModel>(new EmbeddingModel(std::move(*model), std::move(id)));
}

Result<std::vector<std::vector<float>>> EmbeddingModel::embed(std::span<const std::string> texts,
                                                              const std::stop_token& stop) {
  std::vector<std::vector<Token>> tokens;
  std::vector<std::size_t> places;  // of texts that have tokens
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Result<std::vector<Token>> of_text =
        tokens_of_beginning(model_->vocabulary(), texts[i], model_->n_tokens_max());
    if (!of_text) return std::unexpected(of_text.error());
    if (of_text->empty()) continue;
    tokens.push_back(std::move(*of_text));
    places.push_back(i);
  }
  Result<std::vector<std::vector<float>>> rows = model_->read(tokens, stop);
  if (!rows) return rows;
  std::vector<std::vector<float>> vectors(
      texts.size(), std::vector<float>(static_cast<std::size_t>(n_dimensions())));
  for (std::size_t i = 0; i < places.size(); ++i) {
    scale_to_length_one((*rows)[i]);
    vectors[places[i]] = std::move((*rows)[i]);
  }
  return vectors;
}

}  // namespace slipstream
