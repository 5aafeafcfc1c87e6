// The tables of an index, and how a connection to one is opened.
//
//   project   a folder, with how far its index has come
//   file      a path of a project, with its stamp, and its content or why it has none
//   content   a text, once for a project, under the hash of it and of its kind
//   chunk     a piece of a content, compressed
//   symbol    a name that a content defines
//   embedder, vector, chunk_vector   vectors of the chunks (dense/vector_store.h)
//   chunk_words_N, path_words_N   full-text indexes of project N (FTS5)
//
// A file that is renamed or comes back with another branch keeps its content. Contents without a
// file stay for a while, and are not found.
//
// The file is in WAL mode: others read while one process writes, and what was committed survives
// kill -9. Only the process that has the lock of writer_lock_path() writes contents.
//
// Threads: as a Database. Errors: as a Database; kUnsupported for a file of a newer version.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "retrieval/store/database.h"

namespace slipstream {

using ProjectId = std::int64_t;
using ContentId = std::int64_t;
using ChunkId = std::int64_t;

// $XDG_DATA_HOME/slipstream/index.db, or ~/.local/share/slipstream/index.db.
[[nodiscard]] std::filesystem::path default_index_path();
[[nodiscard]] std::string writer_lock_path(const std::string& index_path);

// Creates the file and its folder if they are absent. An index of an older version is emptied but
// for its projects: it is made again from their files.
[[nodiscard]] Result<Database> open_index(const std::string& path);
// A connection that reads only. REQUIRES: open_index() has been called for the path.
[[nodiscard]] Result<Database> open_index_to_read(const std::string& path);

[[nodiscard]] std::string chunk_words(ProjectId project);  // names of tables
[[nodiscard]] std::string path_words(ProjectId project);

// The full-text indexes of a new project.
[[nodiscard]] Result<void> create_words(Database& database, ProjectId project);
[[nodiscard]] Result<void> drop_words(Database& database, ProjectId project);

}  // namespace slipstream
