#include "retrieval/store/schema.h"

#include <cstdlib>
#include <system_error>
#include <vector>

#include "base/format.h"
#include "retrieval/store/fts_words.h"

namespace slipstream {
namespace {

// Changes with the tables, and with how texts are cut into chunks and terms.
constexpr int kVersion = 1;
// "SLIX": tells what the file is, to file(1) as well.
constexpr int kApplicationId = 0x534C4958;

constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS project(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  root TEXT NOT NULL UNIQUE,
  added_at INTEGER NOT NULL,
  is_complete INTEGER NOT NULL DEFAULT 0,  -- all of it has been read once
  fresh_at INTEGER NOT NULL DEFAULT 0,     -- when the index was last known to equal the files, ms
  n_done INTEGER NOT NULL DEFAULT 0,       -- bytes of the update that runs
  n_all INTEGER NOT NULL DEFAULT 0,
  n_secret INTEGER NOT NULL DEFAULT 0,     -- files and folders left out by their names
  problem TEXT NOT NULL DEFAULT ''         -- why the last update failed
);
-- Requests to bring the index up to date, and the last one that was met.
CREATE TABLE IF NOT EXISTS sync(one INTEGER PRIMARY KEY CHECK (one = 1), asked INTEGER, done INTEGER);
INSERT OR IGNORE INTO sync VALUES(1, 0, 0);
)";

constexpr const char* kContentTables = R"(
CREATE TABLE IF NOT EXISTS content(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project INTEGER NOT NULL,
  hash BLOB NOT NULL,
  n_bytes INTEGER NOT NULL,
  n_lines INTEGER NOT NULL,
  is_converted INTEGER NOT NULL,
  n_files INTEGER NOT NULL DEFAULT 0,  -- that have it
  left_at INTEGER NOT NULL DEFAULT 0,  -- when the last of them went, ms
  UNIQUE(project, hash)
);
CREATE INDEX IF NOT EXISTS content_left ON content(project, left_at) WHERE n_files = 0;
CREATE TABLE IF NOT EXISTS file(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project INTEGER NOT NULL,
  path TEXT NOT NULL,
  content INTEGER,                     -- NULL: it was refused
  refusal TEXT,
  n_bytes INTEGER NOT NULL,
  modified_ns INTEGER NOT NULL,
  changed_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  UNIQUE(project, path)
);
CREATE INDEX IF NOT EXISTS file_content ON file(content);
CREATE TABLE IF NOT EXISTS chunk(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  content INTEGER NOT NULL,
  first_line INTEGER NOT NULL,
  last_line INTEGER NOT NULL,
  names TEXT NOT NULL,
  text BLOB NOT NULL                   -- a zstd frame
);
CREATE INDEX IF NOT EXISTS chunk_content ON chunk(content);
CREATE TABLE IF NOT EXISTS symbol(
  project INTEGER NOT NULL,
  name TEXT NOT NULL,
  content INTEGER NOT NULL,
  kind TEXT NOT NULL,
  scope TEXT NOT NULL,
  first_line INTEGER NOT NULL,
  last_line INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS symbol_name ON symbol(project, name COLLATE NOCASE);
CREATE INDEX IF NOT EXISTS symbol_content ON symbol(content);
)";

// Not of a version: an index that was made without them gets them.
constexpr const char* kVectorTables = R"(
CREATE TABLE IF NOT EXISTS embedder(
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL,
  path TEXT NOT NULL,
  n_dimensions INTEGER NOT NULL,
  n_changes INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS vector(
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,           -- of the text that the embedder read
  packed BLOB NOT NULL                 -- packed_vector.h
);
CREATE TABLE IF NOT EXISTS chunk_vector(
  chunk INTEGER PRIMARY KEY,
  vector INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS chunk_vector_vector ON chunk_vector(vector);
)";

Result<std::int64_t> pragma(Database& database, const std::string& name) {
  Result<Statement> value = database.prepare("PRAGMA " + name);
  if (!value) return std::unexpected(value.error());
  const Result<bool> stepped = value->step();
  if (!stepped) return std::unexpected(stepped.error());
  return *stepped ? value->integer(0) : 0;
}

Result<std::vector<ProjectId>> project_ids(Database& database) {
  Result<Statement> select = database.prepare("SELECT id FROM project");
  if (!select) return std::unexpected(select.error());
  std::vector<ProjectId> ids;
  while (true) {
    const Result<bool> has_row = select->step();
    if (!has_row) return std::unexpected(has_row.error());
    if (!*has_row) return ids;
    ids.push_back(select->integer(0));
  }
}

Result<void> empty_contents(Database& database) {
  const Result<std::vector<ProjectId>> ids = project_ids(database);
  if (!ids) return std::unexpected(ids.error());
  for (const ProjectId id : *ids) {
    if (Result<void> dropped = drop_words(database, id); !dropped) return dropped;
  }
  if (Result<void> dropped = database.run(
          "DROP TABLE IF EXISTS symbol; DROP TABLE IF EXISTS chunk; DROP TABLE IF EXISTS file;"
          "DROP TABLE IF EXISTS content; DROP TABLE IF EXISTS chunk_vector;"
          "UPDATE project SET is_complete = 0, fresh_at = 0");
      !dropped) {
    return dropped;
  }
  if (Result<void> created = database.run(kContentTables); !created) return created;
  for (const ProjectId id : *ids) {
    if (Result<void> created = create_words(database, id); !created) return created;
  }
  return {};
}

Result<bool> is_up_to_date(Database& database) {
  const Result<std::int64_t> version = pragma(database, "user_version");
  const Result<std::int64_t> application = pragma(database, "application_id");
  if (!version || !application) {
    return std::unexpected((version ? application : version).error());
  }
  if (*application != 0 && *application != kApplicationId) {
    return fail(Code::kCorrupt,
                format_text("{} is another program's: name a new file", database.path()));
  }
  if (*version > kVersion) {
    return fail(Code::kUnsupported,
                format_text("{} was made by a newer slipstream: use that one, or remove the file",
                            database.path()));
  }
  return *version == kVersion;
}

Result<void> bring_up_to_date(Database& database) {
  if (const Result<bool> is_done = is_up_to_date(database); !is_done || *is_done) {
    return is_done.transform([](bool) {});
  }
  Result<Transaction> transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  // Another process may have done it in the meantime.
  if (const Result<bool> is_done = is_up_to_date(database); !is_done || *is_done) {
    return is_done.transform([](bool) {});
  }
  if (Result<void> created = database.run(kTables); !created) return created;
  if (Result<void> emptied = empty_contents(database); !emptied) return emptied;
  if (Result<void> marked = database.run(format_text(
          "PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId, kVersion));
      !marked) {
    return marked;
  }
  return transaction->commit();
}

Result<Database> open_with(const std::string& path, Database::Access access,
                           const std::string& settings) {
  Result<Database> database = Database::open(path, access);
  if (!database) return database;
  if (Result<void> set = database->run(settings); !set) return std::unexpected(set.error());
  if (Result<void> added = add_words(*database); !added) return std::unexpected(added.error());
  return database;
}

}  // namespace

std::filesystem::path default_index_path() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? std::filesystem::path(value)
                                              : std::filesystem::path();
  };
  std::filesystem::path data = set("XDG_DATA_HOME");
  if (data.empty()) {
    const std::filesystem::path home = set("HOME");
    data = (home.empty() ? "." : home) / ".local" / "share";
  }
  return data / "slipstream" / "index.db";
}

std::string writer_lock_path(const std::string& index_path) { return index_path + "-writer"; }

Result<Database> open_index(const std::string& path) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) {
    return fail(Code::kIo, format_text("cannot make the folder of {}: {}", path, error.message()));
  }
  // What is lost when the machine loses power is the last second: it is read again from the files.
  Result<Database> database =
      open_with(path, Database::Access::kWrite,
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = OFF;"
                "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536;"
                "PRAGMA journal_size_limit = 67108864");
  if (!database) return database;
  if (Result<void> ready = bring_up_to_date(*database); !ready) {
    return std::unexpected(ready.error());
  }
  if (Result<void> created = database->run(kVectorTables); !created) {
    return std::unexpected(created.error());
  }
  return database;
}

Result<Database> open_index_to_read(const std::string& path) {
  return open_with(path, Database::Access::kRead,
                   "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384;"
                   "PRAGMA mmap_size = 1073741824");
}

std::string chunk_words(ProjectId project) { return format_text("chunk_words_{}", project); }
std::string path_words(ProjectId project) { return format_text("path_words_{}", project); }

Result<void> create_words(Database& database, ProjectId project) {
  return database.run(
      format_text("CREATE VIRTUAL TABLE {} USING fts5(names, text, content = '',"
                  " contentless_delete = 1, tokenize = 'words');"
                  "CREATE VIRTUAL TABLE {} USING fts5(path, content = '',"
                  " contentless_delete = 1, tokenize = 'words')",
                  chunk_words(project), path_words(project)));
}

Result<void> drop_words(Database& database, ProjectId project) {
  return database.run(format_text("DROP TABLE IF EXISTS {}; DROP TABLE IF EXISTS {}",
                                  chunk_words(project), path_words(project)));
}

}  // namespace slipstream
