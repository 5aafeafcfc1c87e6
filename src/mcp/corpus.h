// Corpus: what clients of MCP may see: the projects of an index, all of them or some, kept up to
// date while it lives.
//
// Threads: thread-safe. What a Reader gives is of one thread at a time.
// Errors:  those of the index; kNotFound for a project that clients cannot see, which says what
//          there is; kPermission where they may not add any.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "mcp/project_rights.h"
#include "retrieval/indexing/index_service.h"
#include "retrieval/search/related.h"
#include "retrieval/search/searcher.h"
#include "retrieval/store/projects.h"

namespace slipstream {

struct CorpusOptions {
  std::string index_path;
  // Only these folders, or the projects that they are part of; those that the index does not have are
  // added to it. Empty: all that the index has.
  std::vector<std::string> folders = {};
  bool clients_may_add = false;  // folders of their choice
  int n_threads = 0;             // that read files; 0: one per core
};

// Whether the index has what is in the files.
struct Freshness {
  bool is_fresh = false;
  std::string note;  // in words: why not
};

class Corpus {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Corpus>> open(const CorpusOptions& options);

  // A connection to the index with what searches it, for as long as this lives.
  class Reader {
   public:
    ~Reader();
    Reader(Reader&&) noexcept = default;
    Reader& operator=(Reader&&) = delete;
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    [[nodiscard]] Searcher& searcher() { return *tools_->searcher; }
    [[nodiscard]] RelatedFinder& related() { return tools_->related; }
    [[nodiscard]] Database& database() { return tools_->searcher->database(); }
    // Those that clients see, in the order of their roots.
    [[nodiscard]] Result<std::vector<Project>> projects();

   private:
    friend class Corpus;
    struct Tools {
      explicit Tools(std::unique_ptr<Searcher> opened)
          : searcher(std::move(opened)), related(searcher->database()) {}
      std::unique_ptr<Searcher> searcher;
      RelatedFinder related;
    };
    Reader(Corpus& corpus, std::unique_ptr<Tools> tools,
           std::shared_ptr<const ProjectRights> rights)
        : corpus_(&corpus), tools_(std::move(tools)), rights_(std::move(rights)) {}
    Corpus* corpus_;
    std::unique_ptr<Tools> tools_;
    std::shared_ptr<const ProjectRights> rights_;
  };
  // rights: of the client; null: all projects.
  [[nodiscard]] Result<Reader> reader(std::shared_ptr<const ProjectRights> rights = {});

  // Whether clients see all projects of the index.
  [[nodiscard]] bool shows_all() const { return roots_.empty(); }
  [[nodiscard]] bool clients_may_add() const { return clients_may_add_; }
  [[nodiscard]] Result<Project> add(const std::string& folder);

  // Waits for a moment until the index has what is in the files now, and says whether it does. What
  // is known of the projects is brought up to date.
  [[nodiscard]] Freshness sync(Reader& reader, std::span<Project> projects);
  // Waits for so long, or until stop(). kOverloaded if too many wait.
  [[nodiscard]] Result<void> wait_until_fresh(std::chrono::milliseconds time_max);
  // Ends waits.
  void stop() { stop_.request_stop(); }

 private:
  Corpus(const CorpusOptions& options, std::unique_ptr<IndexService> service)
      : index_path_(options.index_path),
        clients_may_add_(options.clients_may_add && options.folders.empty()),
        service_(std::move(service)) {}

  const std::string index_path_;
  const bool clients_may_add_;
  std::set<std::string> roots_;  // set before there are clients
  std::unique_ptr<IndexService> service_;
  std::atomic<int> n_waiting_ = 0;
  std::stop_source stop_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Reader::Tools>> idle_ SLIP_GUARDED_BY(mutex_);
};

// What one client sees of a corpus.
class CorpusView {
 public:
  // rights: null: it sees all.
  explicit CorpusView(Corpus& corpus, std::shared_ptr<const ProjectRights> rights = {})
      : corpus_(corpus), rights_(std::move(rights)) {}

  [[nodiscard]] Result<Corpus::Reader> reader() { return corpus_.reader(rights_); }
  [[nodiscard]] bool shows_all() const { return corpus_.shows_all() && !rights_; }
  // kNotFound for a folder of others.
  [[nodiscard]] Result<Project> add(const std::string& folder);
  [[nodiscard]] Freshness sync(Corpus::Reader& reader, std::span<Project> projects) {
    return corpus_.sync(reader, projects);
  }
  [[nodiscard]] Result<void> wait_until_fresh(std::chrono::milliseconds time_max) {
    return corpus_.wait_until_fresh(time_max);
  }
  // The best of these projects, the best first. are_all: they are all that the client sees.
  [[nodiscard]] Result<SearchAnswer> search(Corpus::Reader& reader,
                                            std::span<const Project> projects,
                                            SearchRequest request, bool are_all) const;

 private:
  Corpus& corpus_;
  const std::shared_ptr<const ProjectRights> rights_;
};

// The root of the project that the folder is, or is part of; it is added if there is none.
[[nodiscard]] Result<std::string> root_in_index(Database& database, const std::string& folder);

// Of those that clients see, by its root, a path below it, or the last part of its root if no other
// has it. Nothing of the file system is looked at.
[[nodiscard]] Result<Project> choose_project(std::span<const Project> projects,
                                             std::string_view named);

// "A is being read: 40 % done." Empty if all of them equal their files as far as is known.
[[nodiscard]] std::string what_is_not_fresh(std::span<const Project> projects);

}  // namespace slipstream
