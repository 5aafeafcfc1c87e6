// IndexService: keeps an index equal to the files of its projects, in a thread of its own.
//
// One process of all that use an index writes it: the one that has the lock. The others wait for
// the lock meanwhile, so that one of them goes on when that process ends. What is to be done is in
// the index itself: projects that others add or remove, and requests to be up to date (sync()).
//
// Threads: thread-safe.
// Errors:  start(): those of the index. Later ones are logged and kept with their project.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/file_lock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "retrieval/indexing/indexer.h"
#include "retrieval/indexing/watcher.h"
#include "retrieval/store/projects.h"

namespace slipstream {

struct IndexServiceOptions {
  std::string path;
  int n_threads = 0;  // that read files; 0: one per core
  // After changes it waits for more, so that what belongs together is written together.
  std::chrono::milliseconds gather_time{20};
  // How often everything is listed: some file systems do not tell of changes.
  std::chrono::seconds list_every{600};
};

class IndexService {
 public:
  [[nodiscard]] static Result<std::unique_ptr<IndexService>> start(
      const IndexServiceOptions& options);
  ~IndexService();
  IndexService(const IndexService&) = delete;
  IndexService& operator=(const IndexService&) = delete;

  // Whether this process is the one that writes.
  [[nodiscard]] bool is_writer() const { return is_writer_; }
  // Waits until the index has all that was in the files when this was called. False: the time was up.
  [[nodiscard]] bool sync(std::chrono::milliseconds time_max);
  // Looks for projects that were added or removed in this process.
  void wake();

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    Project project;
    Clock::time_point listed = {};
    Clock::duration list_time = {};
  };

  // What this process and others have asked for and not got yet.
  struct Asked {
    std::int64_t here = 0;
    std::int64_t elsewhere = 0;  // 0: nothing
    bool is_new = false;
  };

  IndexService(const IndexServiceOptions& options, Database database);
  void run(const std::stop_token& stop);
  [[nodiscard]] bool become_writer(const std::stop_token& stop);
  void write(const std::stop_token& stop);
  [[nodiscard]] Asked look_what_is_asked();
  void meet(const Asked& asked);
  [[nodiscard]] Result<void> find_projects(std::set<ProjectId>& to_list);
  void update(const Watcher::Changes& changes, bool is_asked, Indexer& indexer,
              const std::stop_token& stop);
  [[nodiscard]] bool is_due(const Watched& watched, bool is_asked) const;
  void update_all(Watched& watched, Indexer& indexer, const std::stop_token& stop);
  void note(const Watched& watched, const Result<UpdateSummary>& updated);

  const IndexServiceOptions options_;
  Database database_;  // of the thread
  std::optional<FileLock> lock_;
  std::atomic<bool> is_writer_ = false;
  std::map<ProjectId, Watched> watched_;

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::int64_t asked_ SLIP_GUARDED_BY(mutex_) = 0;  // by this process
  std::int64_t done_ SLIP_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Watcher> watcher_;  // made before the thread, which alone waits on it
  std::jthread thread_;               // must be the last member: it uses all others
};

}  // namespace slipstream
