#include "retrieval/indexing/freshen.h"

#include <optional>
#include <thread>
#include <vector>

#include "base/file_lock.h"
#include "retrieval/indexing/indexer.h"
#include "retrieval/store/projects.h"

namespace slipstream {

Result<bool> freshen(const std::string& index_path, std::chrono::milliseconds time_max) {
  Result<Database> database = open_index(index_path);
  if (!database) return std::unexpected(database.error());
  const Result<std::optional<FileLock>> lock = FileLock::try_lock(writer_lock_path(index_path));
  if (!lock) return std::unexpected(lock.error());
  if (!*lock) return ask_writer(*database, time_max);
  const Result<std::vector<Project>> projects = list_projects(*database);
  if (!projects) return std::unexpected(projects.error());
  Indexer indexer(*database, 0);
  for (const Project& project : *projects) {
    const Result<UpdateSummary> updated = indexer.update(project, {});
    if (!updated) return std::unexpected(updated.error());
  }
  return true;
}

Result<bool> ask_writer(Database& database, std::chrono::milliseconds time_max) {
  constexpr std::chrono::milliseconds kLookEvery(5);
  const auto until = std::chrono::steady_clock::now() + time_max;
  const Result<std::int64_t> request = ask_for_sync(database);
  if (!request) return std::unexpected(request.error());
  while (std::chrono::steady_clock::now() < until) {
    const Result<SyncState> state = sync_state(database);
    if (!state) return std::unexpected(state.error());
    if (state->done >= *request) return true;
    std::this_thread::sleep_for(kLookEvery);
  }
  return false;
}

}  // namespace slipstream
