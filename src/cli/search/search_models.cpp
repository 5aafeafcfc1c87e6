#include "cli/search/search_models.h"

#include <utility>

#include "cli/hub/find_model.h"
#include "cli/plugin_path.h"
#include "cli/search/model_adapters.h"

namespace slipstream::search {
namespace {

Result<ReadingOptions> reading_options(const std::string& model, int n_threads) {
  const Result<std::filesystem::path> path = find_model(model);
  if (!path) return std::unexpected(path.error());
  // Without the plugin stock's kernels read: slower, and the same.
  const Result<std::filesystem::path> plugin = find_turbo_plugin();
  return ReadingOptions{
      .path = *path, .plugin = plugin.value_or(std::filesystem::path()), .n_threads = n_threads};
}

}  // namespace

Result<std::unique_ptr<TextEmbedder>> open_embedder(const std::string& model, int n_threads) {
  const Result<ReadingOptions> options = reading_options(model, n_threads);
  if (!options) return std::unexpected(options.error());
  Result<std::unique_ptr<EmbeddingModel>> opened = EmbeddingModel::load(*options);
  if (!opened) return std::unexpected(opened.error());
  return std::make_unique<ModelEmbedder>(std::move(*opened));
}

Result<std::unique_ptr<TextRanker>> open_ranker(const std::string& model, int n_threads) {
  const Result<ReadingOptions> options = reading_options(model, n_threads);
  if (!options) return std::unexpected(options.error());
  Result<std::unique_ptr<RankingModel>> opened = RankingModel::load(*options);
  if (!opened) return std::unexpected(opened.error());
  return std::make_unique<ModelRanker>(std::move(*opened));
}

}  // namespace slipstream::search
