// Watcher: tells which files of folders have changed (inotify).
//
// Every folder is watched by itself. A new folder is watched and all that is in it counts as changed.
// What cannot be told, because the kernel's queue was full or it allows no more watches, is told as
// an overflow: the caller lists everything again.
//
// Threads: thread-compatible, but wake() is thread-safe.
// Errors:  create(): kIo if there is no inotify.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "retrieval/store/schema.h"

namespace slipstream {

class Watcher {
 public:
  [[nodiscard]] static Result<Watcher> create();

  // Watches these folders of a project instead of those that it watched before. True: some are new,
  // and what was made in them before this is told by nothing.
  [[nodiscard]] bool watch(ProjectId project, const std::string& root,
                           const std::vector<std::string>& folders);
  void forget(ProjectId project);
  // Watches the files of the index itself: another process asks for something by changing them.
  void watch_index(const std::string& index_path);

  struct Changes {
    std::map<ProjectId, std::set<std::string>> paths;  // relative to the roots
    // Projects of which anything may have changed: rules of what belongs to them, or folders.
    std::set<ProjectId> to_list;
    bool index_has_changed = false;
    [[nodiscard]] bool empty() const {
      return paths.empty() && to_list.empty() && !index_has_changed;
    }
    void merge(Changes more);
  };
  // Waits until something has changed, wake() is called or the time is up. Then tells all changes
  // until now; a change that is made before the call is among them.
  [[nodiscard]] Changes wait(std::chrono::milliseconds time_max);
  void wake() const;

  // Whether some folders could not be watched: changes in them are not told.
  [[nodiscard]] bool is_incomplete() const { return n_unwatched_ > 0; }

 private:
  struct Folder {
    ProjectId project;  // 0: the folder of the index
    std::string path;   // relative to the root, with a slash at the end; "" is the root
  };
  Watcher(UniqueFd events, UniqueFd wakes) : events_(std::move(events)), wakes_(std::move(wakes)) {}
  bool add_folder(ProjectId project, const std::string& root, const std::string& path);
  void read_events(Changes& changes);
  void note(const Folder& folder, std::uint32_t mask, const std::string& name, Changes& changes);

  UniqueFd events_;
  UniqueFd wakes_;
  std::unordered_map<int, Folder> folders_;  // by inotify's number
  std::map<ProjectId, std::vector<int>> watches_;
  std::string index_name_;
  int n_unwatched_ = 0;
};

}  // namespace slipstream
