#include "retrieval/indexing/watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/log.h"

namespace slipstream {
namespace {

constexpr std::uint32_t kFolderEvents = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                                        IN_MOVED_TO | IN_ATTRIB | IN_MODIFY | IN_DELETE_SELF |
                                        IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK;

// What decides which files belong to a repository.
bool is_rule(const std::string& path) {
  return path == ".gitignore" || path.ends_with("/.gitignore");
}

}  // namespace

Result<Watcher> Watcher::create() {
  UniqueFd events(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!events) return fail_errno(errno, "cannot watch files (inotify)");
  UniqueFd wakes(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wakes) return fail_errno(errno, "cannot wait for files");
  return Watcher(std::move(events), std::move(wakes));
}

bool Watcher::add_folder(ProjectId project, const std::string& root, const std::string& path) {
  const std::string absolute = root + "/" + path;
  const int watch = inotify_add_watch(events_.get(), absolute.c_str(), kFolderEvents);
  if (watch < 0) return errno == ENOENT || errno == ENOTDIR;  // it is gone again
  folders_[watch] = {project, path};
  watches_[project].push_back(watch);
  return true;
}

bool Watcher::watch(ProjectId project, const std::string& root,
                    const std::vector<std::string>& folders) {
  // Watches that stay are not removed in between: their events would be lost.
  const std::vector<int> list = std::exchange(watches_[project], {});
  const std::set<int> before(list.begin(), list.end());
  int n_unwatched = 0;
  for (const std::string& folder : folders)
    n_unwatched += add_folder(project, root, folder) ? 0 : 1;
  const std::set<int> now(watches_[project].begin(), watches_[project].end());
  for (const int watch : before) {
    if (now.contains(watch)) continue;
    inotify_rm_watch(events_.get(), watch);
    folders_.erase(watch);
  }
  n_unwatched_ = n_unwatched;
  if (n_unwatched > 0) {
    log::warn(
        "index.watch",
        {{"root", root},
         {"n_folders_unwatched", n_unwatched},
         {"do", "raise fs.inotify.max_user_watches; until then changes are found every minute"}});
  }
  return !std::ranges::includes(before, now);
}

void Watcher::forget(ProjectId project) {
  for (const int watch : watches_[project]) {
    inotify_rm_watch(events_.get(), watch);
    folders_.erase(watch);
  }
  watches_.erase(project);
}

void Watcher::watch_index(const std::string& index_path) {
  const std::filesystem::path path(index_path);
  index_name_ = path.filename().string();
  const int watch = inotify_add_watch(events_.get(), path.parent_path().c_str(),
                                      IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE);
  if (watch >= 0) folders_[watch] = {0, ""};
}

void Watcher::note(const Folder& folder, std::uint32_t mask, const std::string& name,
                   Changes& changes) {
  if (folder.project == 0) {
    changes.index_has_changed |= name.starts_with(index_name_);
    return;
  }
  const bool is_folder = (mask & (IN_ISDIR | IN_DELETE_SELF | IN_MOVE_SELF)) != 0;
  const std::string path = folder.path + name;
  if (is_folder || is_rule(path)) {
    // Its attributes do not matter to what is in it.
    const bool is_other = (mask & (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                   IN_DELETE_SELF | IN_MOVE_SELF)) != 0;
    if (is_other || !is_folder) changes.to_list.insert(folder.project);
    return;
  }
  // A file that was only created has nothing in it yet: its writer closes it.
  if (mask != IN_CREATE) changes.paths[folder.project].insert(path);
}

void Watcher::read_events(Changes& changes) {
  alignas(inotify_event) std::array<char, 65536> buffer;
  while (true) {
    const ssize_t n = ::read(events_.get(), buffer.data(), buffer.size());
    if (n <= 0) return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(n);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const char* name = buffer.data() + at + sizeof(event);
      at += sizeof(event) + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0) {
        for (const auto& [project, watches] : watches_) changes.to_list.insert(project);
        continue;
      }
      const auto found = folders_.find(event.wd);
      if (found == folders_.end()) continue;
      const Folder folder = found->second;
      if ((event.mask & IN_IGNORED) != 0) {
        folders_.erase(found);
        continue;
      }
      note(folder, event.mask, event.len > 0 ? std::string(name) : std::string(), changes);
    }
  }
}

void Watcher::Changes::merge(Changes more) {
  for (auto& [project, names] : more.paths) paths[project].merge(names);
  to_list.merge(more.to_list);
  index_has_changed |= more.index_has_changed;
}

Watcher::Changes Watcher::wait(std::chrono::milliseconds time_max) {
  std::array<pollfd, 2> fds = {{{events_.get(), POLLIN, 0}, {wakes_.get(), POLLIN, 0}}};
  (void)::poll(fds.data(), fds.size(), static_cast<int>(time_max.count()));
  std::uint64_t n_wakes = 0;
  (void)!::read(wakes_.get(), &n_wakes, sizeof(n_wakes));
  Changes changes;
  read_events(changes);
  return changes;
}

void Watcher::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wakes_.get(), &one, sizeof(one));
}

}  // namespace slipstream
