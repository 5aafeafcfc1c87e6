// Indexer: brings the index of a project up to date with its files.
//
// A file is read again if its stamp has changed, and cut and written only if its text is new to the
// project. Threads read, outline and cut; the caller's thread writes, and commits every second, so
// that others can search what is there, and an update that is killed goes on where it was.
//
// Threads: thread-compatible; one Indexer of all processes at a time (writer_lock_path).
// Errors:  as the Database and list_files(); kCancelled. A file that cannot be read is refused with
//          its reason; that is no error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "retrieval/content/outliner.h"
#include "retrieval/files/file_list.h"
#include "retrieval/store/projects.h"

namespace slipstream {

struct UpdateSummary {
  std::int64_t n_files = 0;  // of the project, as listed; of a part: that were looked at
  std::int64_t n_read = 0;   // whose stamp had changed
  std::int64_t n_bytes_read = 0;
  std::int64_t n_written = 0;  // whose text was new
  std::int64_t n_removed = 0;
  double seconds = 0;
  std::vector<std::string> folders = {};  // of the project, relative; of a part: none
};

class Indexer {
 public:
  // n_threads: that read; 0: one per core.
  Indexer(Database& database, int n_threads);
  ~Indexer();
  Indexer(const Indexer&) = delete;
  Indexer& operator=(const Indexer&) = delete;

  using OnProgress = std::function<void(std::int64_t n_bytes_done, std::int64_t n_bytes_all)>;
  [[nodiscard]] Result<UpdateSummary> update(const Project& project, const std::stop_token& stop,
                                             const OnProgress& on_progress = {});
  // Only these paths of the project, which may be gone.
  [[nodiscard]] Result<UpdateSummary> update_paths(const Project& project,
                                                   std::span<const std::string> paths,
                                                   const std::stop_token& stop);

 private:
  class Run;
  Database& database_;
  const int n_threads_;
  std::unique_ptr<Outliner> outliner_;  // for small updates, which begin at once
};

}  // namespace slipstream
