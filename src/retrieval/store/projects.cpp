#include "retrieval/store/projects.h"

#include <chrono>
#include <cstdlib>
#include <system_error>

#include "base/format.h"
#include "retrieval/files/secrets.h"

namespace slipstream {
namespace {

constexpr const char* kColumns =
    "SELECT id, root, is_complete, fresh_at, n_done, n_all, n_secret, problem FROM project ";

Project project_of(const Statement& row) {
  return {.id = row.integer(0),
          .root = std::string(row.text(1)),
          .is_complete = row.integer(2) != 0,
          .fresh_at = row.integer(3),
          .n_done = row.integer(4),
          .n_all = row.integer(5),
          .n_secret = static_cast<int>(row.integer(6)),
          .problem = std::string(row.text(7))};
}

template <typename... Values>
Result<void> change(Database& database, const std::string& sql, const Values&... values) {
  Result<Statement> statement = database.prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  statement->bind(values...);
  return statement->run();
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/';
}

}  // namespace

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Result<std::vector<Project>> list_projects(Database& database) {
  Result<Statement> select = database.prepare(std::string(kColumns) + "ORDER BY root");
  if (!select) return std::unexpected(select.error());
  std::vector<Project> projects;
  while (true) {
    const Result<bool> has_row = select->step();
    if (!has_row) return std::unexpected(has_row.error());
    if (!*has_row) return projects;
    projects.push_back(project_of(*select));
  }
}

Result<std::optional<Project>> find_project(Database& database, ProjectId id) {
  Result<Statement> select = database.prepare(std::string(kColumns) + "WHERE id = ?");
  if (!select) return std::unexpected(select.error());
  select->bind(id);
  const Result<bool> has_row = select->step();
  if (!has_row) return std::unexpected(has_row.error());
  if (!*has_row) return std::nullopt;
  return project_of(*select);
}

Result<Project> find_project(Database& database, std::string_view named) {
  Result<std::vector<Project>> projects = list_projects(database);
  if (!projects) return std::unexpected(projects.error());
  while (named.size() > 1 && named.ends_with('/')) named.remove_suffix(1);
  std::error_code error;
  const std::string path = std::filesystem::weakly_canonical(named, error).string();
  const Project* by_name = nullptr;
  int n_by_name = 0;
  for (const Project& project : *projects) {
    if (project.root == named ||
        (!error && (project.root == path || is_below(path, project.root)))) {
      return project;
    }
    if (project.root.ends_with("/" + std::string(named))) {
      by_name = &project;
      ++n_by_name;
    }
  }
  if (n_by_name == 1) return *by_name;
  std::string roots;
  for (const Project& project : *projects) roots += (roots.empty() ? "" : ", ") + project.root;
  if (n_by_name > 1) {
    return fail(Code::kInvalidArgument,
                format_text("several projects are called {}: name the whole path, one of {}", named,
                            roots));
  }
  return fail(Code::kNotFound,
              roots.empty() ? std::string("the index has no projects: slipstream index add FOLDER")
                            : format_text("{} is not in the index, which has {}", named, roots));
}

Result<std::string> project_root(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(folder, error);
  if (error || !std::filesystem::is_directory(root, error)) {
    return fail(Code::kNotFound, format_text("there is no folder {}", folder.string()));
  }
  const char* home = std::getenv("HOME");
  if (const auto reason = why_no_project(root, home == nullptr ? "" : home)) {
    return fail(Code::kInvalidArgument,
                format_text("{} cannot be a project: {}", root.string(), *reason));
  }
  return root.string();
}

Result<Project> add_project(Database& database, const std::string& root) {
  Result<Transaction> transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  const Result<std::vector<Project>> projects = list_projects(database);
  if (!projects) return std::unexpected(projects.error());
  for (const Project& project : *projects) {
    if (project.root == root) return project;
    if (is_below(root, project.root)) {
      return fail(Code::kInvalidArgument,
                  format_text("{} is part of the project {} already", root, project.root));
    }
    if (is_below(project.root, root)) {
      return fail(Code::kInvalidArgument,
                  format_text("the project {} lies in {}: remove it first", project.root, root));
    }
  }
  if (Result<void> added =
          change(database, "INSERT INTO project(root, added_at) VALUES(?, ?)", root, now_ms());
      !added) {
    return std::unexpected(added.error());
  }
  Project project{.id = database.last_row_id(), .root = root};
  if (Result<void> created = create_words(database, project.id); !created) {
    return std::unexpected(created.error());
  }
  if (Result<void> committed = transaction->commit(); !committed) {
    return std::unexpected(committed.error());
  }
  return project;
}

Result<void> remove_project(Database& database, ProjectId id) {
  Result<Transaction> transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  if (Result<void> dropped = drop_words(database, id); !dropped) return dropped;
  for (const char* sql :
       {"DELETE FROM chunk WHERE content IN (SELECT id FROM content WHERE project = ?)",
        "DELETE FROM symbol WHERE project = ?", "DELETE FROM file WHERE project = ?",
        "DELETE FROM content WHERE project = ?", "DELETE FROM project WHERE id = ?"}) {
    if (Result<void> removed = change(database, sql, id); !removed) return removed;
  }
  return transaction->commit();
}

Result<ProjectCounts> count_project(Database& database, ProjectId id) {
  ProjectCounts counts;
  const auto count = [&](const char* sql, auto on_row) -> Result<void> {
    Result<Statement> select = database.prepare(sql);
    if (!select) return std::unexpected(select.error());
    select->bind(id);
    while (true) {
      const Result<bool> has_row = select->step();
      if (!has_row) return std::unexpected(has_row.error());
      if (!*has_row) return {};
      on_row(*select);
    }
  };
  Result<void> counted = count(
      "SELECT count(*), ifnull(sum(content.n_bytes), 0) FROM file JOIN content "
      "ON content.id = file.content WHERE file.project = ?",
      [&](const Statement& row) {
        counts.n_files = row.integer(0);
        counts.n_bytes = row.integer(1);
      });
  if (counted) {
    counted = count(
        "SELECT count(*) FROM chunk WHERE content IN "
        "(SELECT id FROM content WHERE project = ? AND n_files > 0)",
        [&](const Statement& row) { counts.n_chunks = row.integer(0); });
  }
  if (counted) {
    counted = count("SELECT count(*) FROM symbol WHERE project = ?",
                    [&](const Statement& row) { counts.n_symbols = row.integer(0); });
  }
  if (counted) {
    counted = count(
        "SELECT refusal, count(*) FROM file WHERE project = ? AND content IS NULL GROUP BY refusal",
        [&](const Statement& row) { counts.n_refused[std::string(row.text(0))] = row.integer(1); });
  }
  if (!counted) return std::unexpected(counted.error());
  return counts;
}

Result<void> set_progress(Database& database, ProjectId id, std::int64_t n_done,
                          std::int64_t n_all) {
  return change(database, "UPDATE project SET n_done = ?, n_all = ? WHERE id = ?", n_done, n_all,
                id);
}

Result<void> set_fresh(Database& database, ProjectId id, std::int64_t at_ms, int n_secret) {
  return change(database,
                "UPDATE project SET is_complete = 1, fresh_at = ?, n_secret = ?, n_done = 0, "
                "n_all = 0, problem = '' WHERE id = ?",
                at_ms, n_secret, id);
}

Result<void> set_problem(Database& database, ProjectId id, const std::string& problem) {
  return change(database, "UPDATE project SET problem = ?, n_done = 0, n_all = 0 WHERE id = ?",
                problem, id);
}

Result<std::int64_t> ask_for_sync(Database& database) {
  Result<Statement> ask =
      database.prepare("UPDATE sync SET asked = asked + 1 WHERE one = 1 RETURNING asked");
  if (!ask) return std::unexpected(ask.error());
  const Result<bool> has_row = ask->step();
  if (!has_row) return std::unexpected(has_row.error());
  const std::int64_t request = ask->integer(0);
  if (Result<void> done = ask->run(); !done) return std::unexpected(done.error());
  return request;
}

Result<SyncState> sync_state(Database& database) {
  Result<Statement> select = database.prepare("SELECT asked, done FROM sync");
  if (!select) return std::unexpected(select.error());
  const Result<bool> has_row = select->step();
  if (!has_row) return std::unexpected(has_row.error());
  return SyncState{.asked = select->integer(0), .done = select->integer(1)};
}

Result<void> set_synced(Database& database, std::int64_t request) {
  return change(database, "UPDATE sync SET done = ? WHERE one = 1", request);
}

}  // namespace slipstream
