#include "retrieval/search/indexed_file.h"

#include <fcntl.h>

#include "base/format.h"
#include "base/unique_fd.h"
#include "retrieval/content/text_of_file.h"
#include "retrieval/search/chunk_reader.h"

namespace slipstream {
namespace {

// Lines between chunks are blank.
Result<std::string> text_of_chunks(Database& database, ContentId content) {
  Result<Statement> select = database.prepare(
      "SELECT first_line, last_line, text FROM chunk WHERE content = ? ORDER BY first_line");
  if (!select) return std::unexpected(select.error());
  select->bind(content);
  ChunkReader chunks(database);
  std::string text;
  std::int64_t next_line = 1;
  while (true) {
    const Result<bool> has_row = select->step();
    if (!has_row) return std::unexpected(has_row.error());
    if (!*has_row) return text;
    const Result<std::string> chunk = chunks.unpack(select->bytes(2));
    if (!chunk) return std::unexpected(chunk.error());
    for (; next_line < select->integer(0); ++next_line) text += '\n';
    text += *chunk;
    if (!text.ends_with('\n')) text += '\n';
    next_line = select->integer(1) + 1;
  }
}

// Those that columns_of_file() reads.
constexpr std::string_view kColumns =
    "file.path, file.content, content.is_converted, content.n_bytes, content.n_lines, "
    "(SELECT count(*) FROM chunk WHERE chunk.content = file.content)";

IndexedFile columns_of_file(const Statement& row) {
  return {.path = std::string(row.text(0)),
          .content = row.integer(1),
          .is_converted = row.integer(2) != 0,
          .n_bytes = row.integer(3),
          .n_lines = row.integer(4),
          .n_chunks = row.integer(5)};
}

}  // namespace

Result<IndexedFile> find_indexed_file(Database& database, const Project& project,
                                      std::string_view path) {
  Result<Statement> select = database.prepare(
      format_text("SELECT {}, file.refusal FROM file LEFT JOIN content "
                  "ON content.id = file.content WHERE file.project = ? AND file.path = ?",
                  kColumns));
  if (!select) return std::unexpected(select.error());
  select->bind(project.id, path);
  const Result<bool> has_row = select->step();
  if (!has_row) return std::unexpected(has_row.error());
  if (!*has_row) {
    return fail(Code::kNotFound, format_text("the index of {} has no file {}", project.root, path));
  }
  if (select->is_null(1)) {
    return fail(Code::kUnsupported, format_text("{} is not read: {}", path, select->text(6)));
  }
  return columns_of_file(*select);
}

Result<std::vector<IndexedFile>> list_indexed_files(Database& database, const Project& project,
                                                    std::string_view after, int n_max) {
  Result<Statement> select = database.prepare(
      format_text("SELECT {} FROM file JOIN content ON content.id = file.content "
                  "WHERE file.project = ? AND file.path > ? ORDER BY file.path LIMIT ?",
                  kColumns));
  if (!select) return std::unexpected(select.error());
  select->bind(project.id, after, n_max);
  std::vector<IndexedFile> files;
  while (true) {
    const Result<bool> has_row = select->step();
    if (!has_row) return std::unexpected(has_row.error());
    if (!*has_row) return files;
    files.push_back(columns_of_file(*select));
  }
}

Result<std::string> read_indexed_file(Database& database, const Project& project,
                                      const IndexedFile& file) {
  // Converting it again could take a minute.
  if (file.is_converted) return text_of_chunks(database, file.content);
  const Result<UniqueFd> root = open_file(project.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (!root) return std::unexpected(root.error());
  // The file may have changed since: what would be refused now is refused.
  Result<FileText> text = read_text(root->get(), file.path);
  if (!text && text.error().code == Code::kUnsupported) {
    return fail(Code::kUnsupported,
                format_text("{} is not read: {}", file.path, text.error().message));
  }
  return std::move(text).transform([](FileText&& read) { return std::move(read.text); });
}

}  // namespace slipstream
