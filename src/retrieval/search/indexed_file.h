// IndexedFile: a file as an index has it. What an index refused, such as a file of secrets, is not
// one, so nothing that reads through here shows it.
//
// Threads: as the Database.
// Errors:  as the Database and read_text(); kNotFound for a path that the index does not have,
//          kUnsupported, with the reason, for one that it refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "retrieval/store/projects.h"

namespace slipstream {

struct IndexedFile {
  std::string path;  // relative to the project's root
  ContentId content = 0;
  bool is_converted = false;
  std::int64_t n_bytes = 0;  // of its text
  std::int64_t n_lines = 0;
  std::int64_t n_chunks = 0;
};

[[nodiscard]] Result<IndexedFile> find_indexed_file(Database& database, const Project& project,
                                                    std::string_view path);
// In the order of their paths, those after one of them.
[[nodiscard]] Result<std::vector<IndexedFile>> list_indexed_files(Database& database,
                                                                  const Project& project,
                                                                  std::string_view after,
                                                                  int n_max);
// Its text as it is now; of a document, such as PDF, the text that was made of it. Lines are those
// of the index.
[[nodiscard]] Result<std::string> read_indexed_file(Database& database, const Project& project,
                                                    const IndexedFile& file);

}  // namespace slipstream
