// Projects: the folders of an index.
//
// Threads: as the Database. Errors: as the Database; as each function says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "retrieval/store/schema.h"

namespace slipstream {

[[nodiscard]] std::int64_t now_ms();  // since 1970

struct Project {
  ProjectId id = 0;
  std::string root;
  bool is_complete = false;   // all of it has been read once
  std::int64_t fresh_at = 0;  // when the index was last known to equal the files, ms; 0: never
  // Bytes of the update that runs; n_all is 0 if none does.
  std::int64_t n_done = 0;
  std::int64_t n_all = 0;
  int n_secret = 0;
  std::string problem = {};  // why the last update failed; empty: it did not
};

struct ProjectCounts {
  std::int64_t n_files = 0;  // that are found
  std::int64_t n_bytes = 0;  // of their texts
  std::int64_t n_chunks = 0;
  std::int64_t n_symbols = 0;
  std::map<std::string, std::int64_t> n_refused;  // by reason
};

[[nodiscard]] Result<std::vector<Project>> list_projects(Database& database);
[[nodiscard]] Result<std::optional<Project>> find_project(Database& database, ProjectId id);
// By a folder, as the user names it: its root, a folder below it, or the last part of its root if no
// other project has it. kNotFound says what there is.
[[nodiscard]] Result<Project> find_project(Database& database, std::string_view named);

// The root that a folder gets: absolute and without links. kInvalidArgument for a folder that cannot
// be a project, kNotFound if there is none.
[[nodiscard]] Result<std::string> project_root(const std::filesystem::path& folder);
// Adds the folder, or finds it. kInvalidArgument if it lies in another project or around one.
[[nodiscard]] Result<Project> add_project(Database& database, const std::string& root);
// Removes it with all that was read of it.
[[nodiscard]] Result<void> remove_project(Database& database, ProjectId id);

[[nodiscard]] Result<ProjectCounts> count_project(Database& database, ProjectId id);

// What an update tells of itself.
[[nodiscard]] Result<void> set_progress(Database& database, ProjectId id, std::int64_t n_done,
                                        std::int64_t n_all);
[[nodiscard]] Result<void> set_fresh(Database& database, ProjectId id, std::int64_t at_ms,
                                     int n_secret);
[[nodiscard]] Result<void> set_problem(Database& database, ProjectId id,
                                       const std::string& problem);

// A request to bring all projects up to date: its number, and the last one that was met.
[[nodiscard]] Result<std::int64_t> ask_for_sync(Database& database);
struct SyncState {
  std::int64_t asked = 0;
  std::int64_t done = 0;
};
[[nodiscard]] Result<SyncState> sync_state(Database& database);
[[nodiscard]] Result<void> set_synced(Database& database, std::int64_t request);

}  // namespace slipstream
