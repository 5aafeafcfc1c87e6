#include "retrieval/indexing/index_service.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "base/log.h"
#include "retrieval/indexing/freshen.h"

namespace slipstream {
namespace {

constexpr std::chrono::milliseconds kTryLockEvery(500);
constexpr std::chrono::milliseconds kLookEvery(1000);
// Folders that cannot be watched are listed as often as this, or more rarely if that takes long.
constexpr std::chrono::seconds kListUnwatchedEvery(60);
constexpr int kListShare = 50;  // at most a fiftieth of the time

}  // namespace

Result<std::unique_ptr<IndexService>> IndexService::start(const IndexServiceOptions& options) {
  Result<Database> database = open_index(options.path);
  if (!database) return std::unexpected(database.error());
  Result<Watcher> watcher = Watcher::create();
  if (!watcher) return std::unexpected(watcher.error());
  watcher->watch_index(options.path);
  std::unique_ptr<IndexService> service(new IndexService(options, std::move(*database)));
  service->watcher_ = std::make_unique<Watcher>(std::move(*watcher));
  service->thread_ =
      std::jthread([raw = service.get()](const std::stop_token& stop) { raw->run(stop); });
  return service;
}

IndexService::IndexService(const IndexServiceOptions& options, Database database)
    : options_(options), database_(std::move(database)) {}

IndexService::~IndexService() {
  thread_.request_stop();
  wake();
}

void IndexService::wake() { watcher_->wake(); }

void IndexService::run(const std::stop_token& stop) {
  try {
    if (become_writer(stop)) write(stop);
  } catch (const std::exception& error) {  // memory
    log::error("index.service", {{"thrown", error.what()}});
  }
  is_writer_ = false;
  lock_.reset();
}

// Waits until no other process writes.
bool IndexService::become_writer(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Result<std::optional<FileLock>> lock = FileLock::try_lock(writer_lock_path(options_.path));
    if (!lock) {
      log::error("index.lock", {{"error", lock.error().message}});
      return false;
    }
    if (*lock) {
      lock_ = std::move(**lock);
      is_writer_ = true;
      return true;
    }
    (void)watcher_->wait(kTryLockEvery);
  }
  return false;
}

void IndexService::write(const std::stop_token& stop) {
  Indexer indexer(database_, options_.n_threads);
  Watcher::Changes changes;
  while (!stop.stop_requested()) {
    // Before the changes are read: those that were made before it was asked are among them.
    const Asked asked = look_what_is_asked();
    changes.merge(watcher_->wait(std::chrono::milliseconds(0)));
    if (const Result<void> found = find_projects(changes.to_list); !found) {
      log::error("index.projects", {{"error", found.error().message}});
    }
    update(std::exchange(changes, {}), asked.is_new, indexer, stop);
    if (stop.stop_requested()) return;
    meet(asked);
    changes = watcher_->wait(kLookEvery);
    if (!changes.paths.empty()) changes.merge(watcher_->wait(options_.gather_time));
  }
}

IndexService::Asked IndexService::look_what_is_asked() {
  Asked asked;
  if (const Result<SyncState> state = sync_state(database_); state && state->asked != state->done) {
    asked.elsewhere = state->asked;
  }
  const MutexLock lock(mutex_);
  asked.here = asked_;
  asked.is_new = asked.elsewhere != 0 || asked.here != done_;
  return asked;
}

void IndexService::meet(const Asked& asked) {
  if (asked.elsewhere != 0) {
    if (const Result<void> told = set_synced(database_, asked.elsewhere); !told) {
      log::error("index.sync", {{"error", told.error().message}});
    }
  }
  {
    const MutexLock lock(mutex_);
    done_ = asked.here;
  }
  changed_.notify_all();
}

bool IndexService::is_due(const Watched& watched, bool is_asked) const {
  if (is_asked && watcher_->is_incomplete()) return true;
  const std::chrono::seconds every =
      watcher_->is_incomplete() ? kListUnwatchedEvery : options_.list_every;
  return Clock::now() - watched.listed >
         std::max<Clock::duration>(every, watched.list_time * kListShare);
}

void IndexService::update(const Watcher::Changes& changes, bool is_asked, Indexer& indexer,
                          const std::stop_token& stop) {
  for (auto& [id, watched] : watched_) {
    const auto paths = changes.paths.find(id);
    if (changes.to_list.contains(id) || is_due(watched, is_asked)) {
      update_all(watched, indexer, stop);
    } else if (paths != changes.paths.end()) {
      const std::vector<std::string> list(paths->second.begin(), paths->second.end());
      note(watched, indexer.update_paths(watched.project, list, stop));
    }
    if (stop.stop_requested()) return;
  }
}

// Projects that are new are to be listed; those that are gone are forgotten.
Result<void> IndexService::find_projects(std::set<ProjectId>& to_list) {
  const Result<std::vector<Project>> projects = list_projects(database_);
  if (!projects) return std::unexpected(projects.error());
  std::set<ProjectId> ids;
  for (const Project& project : *projects) {
    ids.insert(project.id);
    if (watched_.contains(project.id)) continue;
    watched_[project.id].project = project;
    to_list.insert(project.id);
  }
  std::erase_if(watched_, [&](const auto& entry) {
    if (ids.contains(entry.first)) return false;
    watcher_->forget(entry.first);
    return true;
  });
  return {};
}

void IndexService::note(const Watched& watched, const Result<UpdateSummary>& updated) {
  if (updated) {
    if (updated->n_read + updated->n_removed == 0) return;
    log::debug("index.update", {{"root", watched.project.root},
                                {"n_read", updated->n_read},
                                {"n_written", updated->n_written},
                                {"n_removed", updated->n_removed},
                                {"seconds", updated->seconds}});
    return;
  }
  if (updated.error().code == Code::kCancelled) return;
  log::error("index.update", {{"root", watched.project.root}, {"error", updated.error().message}});
  const Result<void> told = set_problem(database_, watched.project.id, updated.error().message);
  if (!told) log::error("index.update", {{"error", told.error().message}});
}

void IndexService::update_all(Watched& watched, Indexer& indexer, const std::stop_token& stop) {
  // What is made in a folder between the listing that finds it and its watch is told by nobody, so
  // everything is listed again until no folder is new.
  bool has_new_folders = true;
  while (has_new_folders && !stop.stop_requested()) {
    const auto began = Clock::now();
    const Result<UpdateSummary> updated = indexer.update(watched.project, stop);
    note(watched, updated);
    watched.listed = Clock::now();
    watched.list_time = watched.listed - began;
    if (!updated) return;
    has_new_folders = watcher_->watch(watched.project.id, watched.project.root, updated->folders);
  }
}

bool IndexService::sync(std::chrono::milliseconds time_max) {
  if (!is_writer_) {
    Result<Database> database = open_index(options_.path);
    return database && ask_writer(*database, time_max).value_or(false);
  }
  const auto until = Clock::now() + time_max;
  std::int64_t request = 0;
  {
    const MutexLock lock(mutex_);
    request = ++asked_;
  }
  wake();
  const MutexLock lock(mutex_);
  return changed_.wait_until(mutex_, until, [this, request]() SLIP_TSA(no_thread_safety_analysis) {
    return done_ >= request;
  });
}

}  // namespace slipstream
