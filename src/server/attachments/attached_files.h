// AttachedFiles: the files of one chat, as its index has them.
//
// Threads: thread-compatible.
// Errors:  those of the index; kNotFound for a name that is not there.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "retrieval/search/indexed_file.h"
#include "retrieval/search/searcher.h"
#include "retrieval/store/content_writer.h"
#include "retrieval/store/projects.h"

namespace slipstream {

class AttachedFiles {
 public:
  // REQUIRES: the index was written by attach_content().
  [[nodiscard]] static Result<AttachedFiles> open(const std::string& index_path);

  // In the order of their names.
  [[nodiscard]] Result<std::vector<IndexedFile>> list();
  [[nodiscard]] Result<IndexedFile> find(const std::string& name);
  [[nodiscard]] Result<std::string> text_of(const IndexedFile& file);
  [[nodiscard]] Result<SearchAnswer> search(const SearchRequest& request) {
    return searcher_->search(request);
  }

 private:
  AttachedFiles(std::unique_ptr<Searcher> searcher, Project project)
      : searcher_(std::move(searcher)), project_(std::move(project)) {}

  std::unique_ptr<Searcher> searcher_;
  Project project_;
};

// The text of a file with its symbols and chunks. kUnsupported: why it has none.
[[nodiscard]] Result<Content> content_of_attachment(const std::string& name, std::string bytes);
// Gives the name this content, in an index that is made if there is none. It is on disk then.
[[nodiscard]] Result<void> attach_content(const std::string& index_path, const std::string& name,
                                          const Content& content);
// kNotFound if it has no file of the name. Returns how many files remain.
[[nodiscard]] Result<std::size_t> detach_content(const std::string& index_path,
                                                 const std::string& name);

}  // namespace slipstream
