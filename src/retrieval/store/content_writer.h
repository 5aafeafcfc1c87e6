// ContentWriter: writes what files contain into an index.
//
// Its functions are called within a transaction of the caller, who commits now and then.
//
// Threads: as the Database. Errors: as the Database.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/zstd_frame.h"
#include "retrieval/content/chunker.h"
#include "retrieval/content/symbol.h"
#include "retrieval/files/file_list.h"
#include "retrieval/store/schema.h"

namespace slipstream {

using ContentHash = std::array<std::byte, 32>;

// Of a text and of what its file is called: the same text can be a program and a letter.
[[nodiscard]] ContentHash content_hash(std::string_view text, std::string_view path);

// A text, ready to be written.
struct Content {
  ContentHash hash;
  std::string text;
  bool is_converted = false;
  std::vector<Chunk> chunks;  // of the text
  std::vector<Symbol> symbols;
};

class ContentWriter {
 public:
  [[nodiscard]] static Result<ContentWriter> create(Database& database, ProjectId project);

  // The content with this hash, if the project has or had one.
  [[nodiscard]] Result<std::optional<ContentId>> find(const ContentHash& hash);
  [[nodiscard]] Result<ContentId> add(const Content& content);

  // Gives a path its content, or says why it has none. Replaces what it had.
  [[nodiscard]] Result<void> set_file(const std::string& path, const FileStamp& stamp,
                                      ContentId content);
  [[nodiscard]] Result<void> refuse_file(const std::string& path, const FileStamp& stamp,
                                         const std::string& reason);
  // The file was touched, but its content stays.
  [[nodiscard]] Result<void> set_stamp(const std::string& path, const FileStamp& stamp);
  [[nodiscard]] Result<void> remove_file(const std::string& path);

  // Removes the contents that no file has, the longest unused first, until they have at most so
  // many bytes.
  [[nodiscard]] Result<void> forget_unused(std::int64_t n_bytes_max);

 private:
  struct Statements {
    Statement find, add, add_chunk, add_words, add_symbol, find_file, add_file, change_file,
        remove_file, add_path, remove_path, count_file, set_stamp;
  };
  ContentWriter(Database& database, ProjectId project, Statements statements)
      : database_(&database), project_(project), sql_(std::move(statements)) {}

  struct OldFile {
    std::int64_t id;
    ContentId content;  // 0: none
  };
  [[nodiscard]] Result<std::optional<OldFile>> find_file(const std::string& path);
  [[nodiscard]] Result<void> set(const std::string& path, const FileStamp& stamp,
                                 std::optional<ContentId> content, const std::string& reason);
  [[nodiscard]] Result<void> count(ContentId content, int change);
  [[nodiscard]] Result<void> remove_content(ContentId content);

  Database* database_;
  ProjectId project_;
  Statements sql_;
  FrameEncoder encoder_{3};
};

}  // namespace slipstream
