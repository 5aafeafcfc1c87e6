// DenseSearch: the nearest chunks of a query by the meaning of its words.
//
// It works if the index has vectors of the embedder that it was given. If not, or if the embedder
// fails, why_not() says so and searches go on with words alone.
//
// Threads: thread-compatible; cache and embedder may be shared. Errors: as the Database.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "retrieval/dense/text_embedder.h"
#include "retrieval/dense/vector_cache.h"

namespace slipstream {

class DenseSearch {
 public:
  // Both must outlive this. embedder: may be null.
  DenseSearch(VectorCache* cache, TextEmbedder* embedder) : cache_(cache), embedder_(embedder) {}

  // Begins a search. False: there are no vectors to compare with.
  [[nodiscard]] bool ask(Database& database, std::string_view query);
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

  // REQUIRES: ask() has returned true. Null: the project has none.
  [[nodiscard]] std::shared_ptr<const VectorTable> table(Database& database, ProjectId project);
  [[nodiscard]] const PackedVector& query() const { return query_; }

 private:
  bool refuse(std::string reason) {
    why_not_ = std::move(reason);
    return false;
  }

  VectorCache* cache_;
  TextEmbedder* embedder_;
  std::string why_not_;
  EmbedderInfo info_;
  PackedVector query_;
};

}  // namespace slipstream
