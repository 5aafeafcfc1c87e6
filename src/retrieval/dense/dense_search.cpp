#include "retrieval/dense/dense_search.h"

#include <span>
#include <utility>

#include "retrieval/retrieval_limits.h"

namespace slipstream {

bool DenseSearch::ask(Database& database, std::string_view query) {
  if (embedder_ == nullptr) return refuse("there is no embedder");
  Result<std::optional<EmbedderInfo>> info = find_embedder(database);
  if (!info) return refuse(info.error().message);
  if (!*info) return refuse("the index has no vectors: slipstream index embed MODEL makes them");
  info_ = std::move(**info);
  if (info_.id != embedder_->id() || info_.n_dimensions != embedder_->n_dimensions()) {
    return refuse(
        "the index has vectors of another model: slipstream index embed MODEL makes new ones");
  }
  const std::string text(query.substr(0, kRetrievalLimits.query_bytes_max));
  const Result<std::vector<std::vector<float>>> vectors = embedder_->embed(std::span(&text, 1), {});
  if (!vectors) return refuse(vectors.error().message);
  if (vectors->size() != 1 || std::cmp_not_equal(vectors->front().size(), info_.n_dimensions)) {
    return refuse("the embedder gave no vector");
  }
  query_ = pack(vectors->front());
  why_not_.clear();
  return true;
}

std::shared_ptr<const VectorTable> DenseSearch::table(Database& database, ProjectId project) {
  Result<std::shared_ptr<const VectorTable>> table = cache_->get(database, info_, project);
  if (table) return std::move(*table);
  why_not_ = table.error().message;
  return nullptr;
}

}  // namespace slipstream
