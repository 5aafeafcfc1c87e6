// Searcher: answers queries from an index.
//
// First the full-text index gives candidates, then each of them is looked at with all that is known
// of it (ranker.h). If there is an embedder and the index has vectors of it, chunks of near meaning
// are candidates too, and both orders become one (dense/fusion.h). A reranker, if there is one,
// orders the first few anew. A file gives a few places at most. A query that nothing answers well
// gets no places, and is told so.
//
// Threads: thread-compatible: one for each thread that asks.
// Errors:  those of the index; kNotFound for a project that is not in it; kInvalidArgument for a
//          query without words. A model that fails is no error: the search goes on, and says so.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/zstd_frame.h"
#include "retrieval/dense/dense_search.h"
#include "retrieval/dense/fusion.h"
#include "retrieval/dense/text_ranker.h"
#include "retrieval/search/query.h"
#include "retrieval/search/ranker.h"
#include "retrieval/search/term_counts.h"
#include "retrieval/store/projects.h"

namespace slipstream {

// Models that a search may use; each may be null. They outlive the Searcher, and others may share
// them.
struct SearchModels {
  VectorCache* vectors = nullptr;  // with an embedder
  TextEmbedder* embedder = nullptr;
  TextRanker* ranker = nullptr;
};

struct SearchRequest {
  std::string query = {};
  std::optional<ProjectId> project = {};  // none: all projects
  std::string path_prefix = {};           // only files below it, relative to the root; empty: all
  int n_results_max = 8;
  int n_of_file_max = 3;
  // A place answers the query if it has this share of the weight of its words, or less of a long one.
  double share_min = 0.4;
  // What meaning counts beside words, from 0 to 1; none: what is best for the kind of query.
  std::optional<double> meaning = {};
};

struct Found {
  std::string root;  // of the project
  std::string path;  // relative to it
  int first_line = 0;
  int last_line = 0;
  std::string text;
  std::string names;  // of what it defines or is part of
  double score = 0;   // of its words; if meaning counted, of both, up to 1; or the reranker's
  double words = 0;   // how well its words answer the query
  std::optional<float> nearness = {};  // of its meaning: a cosine; none: it was not compared
  std::vector<std::string> terms;      // of the query that it has
  bool defines_name = false;           // that the query has
  bool is_changed = false;             // the file is not what was read any more
  bool is_converted = false;           // lines are those of the text that was made of a document
};

struct SearchAnswer {
  std::vector<Found> found;
  // The best places that there are have too little of the query: they are not given.
  bool is_nothing_relevant = false;
  bool was_cut = false;  // the query had more terms than are looked for
  // Why meaning, or the reranker, did not count although there is a model for it; empty: it did, or
  // there is none.
  std::string problem = {};
};

class Searcher {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Searcher>> open(const std::string& index_path,
                                                              const SearchModels& models = {});

  [[nodiscard]] Result<SearchAnswer> search(const SearchRequest& request);
  [[nodiscard]] Database& database() { return database_; }

 private:
  Searcher(Database database, const SearchModels& models)
      : database_(std::move(database)),
        models_(models),
        dense_(models.vectors, models.embedder),
        counts_(database_) {}

  struct Place;  // a candidate with what is known of it
  [[nodiscard]] Result<std::vector<WeightedTerm>> weigh(ProjectId project, const Query& query);
  [[nodiscard]] Result<std::vector<Place>> find_places(const Project& project, const Query& query,
                                                       const SearchRequest& request,
                                                       const VectorTable* near);
  [[nodiscard]] Result<void> add_definitions(ProjectId project, const Query& query,
                                             std::vector<Place>& places);
  [[nodiscard]] Result<void> add_files(ProjectId project, std::span<const WeightedTerm> terms,
                                       std::vector<Place>& places);
  // What meaning counts for this query; 0, with the reason, if there is nothing to compare with.
  [[nodiscard]] Result<double> weigh_meaning(const SearchRequest& request, const Query& query,
                                             SearchAnswer& answer);
  // The nearest chunks by meaning.
  void add_near(const VectorTable& table, std::size_t n_max, std::vector<Place>& places);
  static void order(std::vector<Place>& places, double weight_of_meaning);
  // The first few, by the reranker.
  void rerank(const std::string& query, SearchAnswer& answer);
  [[nodiscard]] Result<bool> read_place(const Project& project, Place& place,
                                        const std::string& path_prefix);
  [[nodiscard]] Result<std::string> unpack(std::span<const std::byte> frame);
  // The statement, made once.
  [[nodiscard]] Result<Statement*> prepared(const std::string& sql);
  // Whether it is worth showing at all.
  [[nodiscard]] static bool answers(const Place& place, double share_min);
  [[nodiscard]] static Found found_of(const Place& place, const Query& query);

  Database database_;
  const SearchModels models_;
  DenseSearch dense_;
  TermCounts counts_;
  Words words_;
  FrameDecoder decoder_;
  std::deque<std::pair<std::string, Statement>> statements_;  // by their SQL
};

}  // namespace slipstream
