#include "retrieval/store/content_writer.h"

#include <openssl/evp.h>

#include "base/check.h"
#include "base/format.h"
#include "retrieval/store/projects.h"

namespace slipstream {
namespace {

// Prepares statements until one fails.
class Preparer {
 public:
  explicit Preparer(Database& database) : database_(database) {}
  Statement operator()(const std::string& sql) {
    if (error_) return {};
    Result<Statement> statement = database_.prepare(sql);
    if (statement) return std::move(*statement);
    error_ = statement.error();
    return {};
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  Database& database_;
  std::optional<Error> error_;
};

}  // namespace

ContentHash content_hash(std::string_view text, std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  const std::string_view kind = dot == std::string_view::npos ? name : name.substr(dot);
  std::string named(kind);
  named += '\0';
  named += text;
  ContentHash hash{};
  unsigned int n_bytes = 0;
  const int is_made =
      EVP_Digest(named.data(), named.size(), reinterpret_cast<unsigned char*>(hash.data()),
                 &n_bytes, EVP_sha256(), nullptr);
  SLIP_CHECK(is_made == 1 && n_bytes == hash.size(), "OpenSSL has no SHA-256");
  return hash;
}

Result<ContentWriter> ContentWriter::create(Database& database, ProjectId project) {
  Preparer prepare(database);
  auto find = prepare("SELECT id FROM content WHERE project = ? AND hash = ?");
  auto add = prepare(
      "INSERT INTO content(project, hash, n_bytes, n_lines, is_converted) VALUES(?, ?, ?, ?, ?)");
  auto add_chunk = prepare(
      "INSERT INTO chunk(content, first_line, last_line, names, text) VALUES(?, ?, ?, ?, ?)");
  auto add_words = prepare(
      format_text("INSERT INTO {}(rowid, names, text) VALUES(?, ?, ?)", chunk_words(project)));
  auto add_symbol = prepare(
      "INSERT INTO symbol(project, name, content, kind, scope, first_line, last_line) "
      "VALUES(?, ?, ?, ?, ?, ?, ?)");
  auto find_file = prepare("SELECT id, content FROM file WHERE project = ? AND path = ?");
  auto add_file = prepare(
      "INSERT INTO file(project, path, content, refusal, n_bytes, modified_ns, changed_ns, inode) "
      "VALUES(?, ?, nullif(?, 0), ?, ?, ?, ?, ?)");
  auto change_file = prepare(
      "UPDATE file SET content = nullif(?, 0), refusal = ?, n_bytes = ?, modified_ns = ?, "
      "changed_ns = ?, inode = ? WHERE id = ?");
  auto remove_file = prepare("DELETE FROM file WHERE id = ?");
  auto add_path =
      prepare(format_text("INSERT INTO {}(rowid, path) VALUES(?, ?)", path_words(project)));
  auto remove_path = prepare(format_text("DELETE FROM {} WHERE rowid = ?", path_words(project)));
  auto count_file =
      prepare("UPDATE content SET n_files = n_files + ?1, left_at = ?2 WHERE id = ?3");
  auto set_stamp = prepare(
      "UPDATE file SET n_bytes = ?, modified_ns = ?, changed_ns = ?, inode = ? "
      "WHERE project = ? AND path = ?");
  if (prepare.error()) return std::unexpected(*prepare.error());
  return ContentWriter(database, project,
                       {std::move(find), std::move(add), std::move(add_chunk), std::move(add_words),
                        std::move(add_symbol), std::move(find_file), std::move(add_file),
                        std::move(change_file), std::move(remove_file), std::move(add_path),
                        std::move(remove_path), std::move(count_file), std::move(set_stamp)});
}

Result<std::optional<ContentId>> ContentWriter::find(const ContentHash& hash) {
  sql_.find.bind(project_, std::span<const std::byte>(hash));
  const Result<bool> has_row = sql_.find.step();
  if (!has_row) return std::unexpected(has_row.error());
  std::optional<ContentId> id;
  if (*has_row) id = sql_.find.integer(0);
  sql_.find.reset();
  return id;
}

Result<ContentId> ContentWriter::add(const Content& content) {
  const std::int64_t n_lines = content.chunks.empty() ? 0 : content.chunks.back().last_line;
  sql_.add.bind(project_, std::span<const std::byte>(content.hash),
                static_cast<std::int64_t>(content.text.size()), n_lines,
                content.is_converted ? 1 : 0);
  if (Result<void> added = sql_.add.run(); !added) return std::unexpected(added.error());
  const ContentId id = database_->last_row_id();
  for (const Chunk& chunk : content.chunks) {
    const std::string_view text =
        std::string_view(content.text).substr(chunk.begin, chunk.end - chunk.begin);
    const Result<std::span<const std::byte>> frame =
        encoder_.encode(std::as_bytes(std::span(text)));
    if (!frame) return std::unexpected(frame.error());
    sql_.add_chunk.bind(id, chunk.first_line, chunk.last_line, chunk.names, *frame);
    if (Result<void> added = sql_.add_chunk.run(); !added) return std::unexpected(added.error());
    sql_.add_words.bind(database_->last_row_id(), chunk.names, text);
    if (Result<void> added = sql_.add_words.run(); !added) return std::unexpected(added.error());
  }
  for (const Symbol& symbol : content.symbols) {
    sql_.add_symbol.bind(project_, symbol.name, id, symbol.kind, symbol.scope, symbol.first_line,
                         symbol.last_line);
    if (Result<void> added = sql_.add_symbol.run(); !added) return std::unexpected(added.error());
  }
  return id;
}

Result<std::optional<ContentWriter::OldFile>> ContentWriter::find_file(const std::string& path) {
  sql_.find_file.bind(project_, path);
  const Result<bool> has_row = sql_.find_file.step();
  if (!has_row) return std::unexpected(has_row.error());
  std::optional<OldFile> file;
  if (*has_row) file = OldFile{sql_.find_file.integer(0), sql_.find_file.integer(1)};
  sql_.find_file.reset();
  return file;
}

Result<void> ContentWriter::count(ContentId content, int change) {
  if (content == 0) return {};
  sql_.count_file.bind(change, now_ms(), content);
  return sql_.count_file.run();
}

Result<void> ContentWriter::set(const std::string& path, const FileStamp& stamp,
                                std::optional<ContentId> content, const std::string& reason) {
  const Result<std::optional<OldFile>> old = find_file(path);
  if (!old) return std::unexpected(old.error());
  const ContentId now = content.value_or(0);
  if (!*old) {
    sql_.add_file.bind(project_, path, now, reason, stamp.n_bytes, stamp.modified_ns,
                       stamp.changed_ns, stamp.inode);
    if (Result<void> added = sql_.add_file.run(); !added) return added;
    sql_.add_path.bind(database_->last_row_id(), path);
    if (Result<void> added = sql_.add_path.run(); !added) return added;
    return count(now, 1);
  }
  sql_.change_file.bind(now, reason, stamp.n_bytes, stamp.modified_ns, stamp.changed_ns,
                        stamp.inode, (*old)->id);
  if (Result<void> changed = sql_.change_file.run(); !changed) return changed;
  if ((*old)->content == now) return {};
  if (Result<void> counted = count((*old)->content, -1); !counted) return counted;
  return count(now, 1);
}

Result<void> ContentWriter::set_file(const std::string& path, const FileStamp& stamp,
                                     ContentId content) {
  return set(path, stamp, content, "");
}

Result<void> ContentWriter::refuse_file(const std::string& path, const FileStamp& stamp,
                                        const std::string& reason) {
  return set(path, stamp, std::nullopt, reason);
}

Result<void> ContentWriter::set_stamp(const std::string& path, const FileStamp& stamp) {
  sql_.set_stamp.bind(stamp.n_bytes, stamp.modified_ns, stamp.changed_ns, stamp.inode, project_,
                      path);
  return sql_.set_stamp.run();
}

Result<void> ContentWriter::remove_file(const std::string& path) {
  const Result<std::optional<OldFile>> old = find_file(path);
  if (!old) return std::unexpected(old.error());
  if (!*old) return {};
  sql_.remove_file.bind((*old)->id);
  if (Result<void> removed = sql_.remove_file.run(); !removed) return removed;
  sql_.remove_path.bind((*old)->id);
  if (Result<void> removed = sql_.remove_path.run(); !removed) return removed;
  return count((*old)->content, -1);
}

Result<void> ContentWriter::remove_content(ContentId content) {
  const std::string id = std::to_string(content);
  return database_->run(
      format_text("DELETE FROM {} WHERE rowid IN (SELECT id FROM chunk WHERE content = {});"
                  "DELETE FROM chunk WHERE content = {}; DELETE FROM symbol WHERE content = {};"
                  "DELETE FROM content WHERE id = {}",
                  chunk_words(project_), id, id, id, id));
}

Result<void> ContentWriter::forget_unused(std::int64_t n_bytes_max) {
  Result<Statement> select = database_->prepare(
      "SELECT id, n_bytes FROM content WHERE project = ? AND n_files = 0 ORDER BY left_at DESC, "
      "id");
  if (!select) return std::unexpected(select.error());
  select->bind(project_);
  std::vector<ContentId> forgotten;
  std::int64_t n_bytes = 0;
  while (true) {
    const Result<bool> has_row = select->step();
    if (!has_row) return std::unexpected(has_row.error());
    if (!*has_row) break;
    n_bytes += select->integer(1);
    if (n_bytes > n_bytes_max) forgotten.push_back(select->integer(0));
  }
  for (const ContentId id : forgotten) {
    if (Result<void> removed = remove_content(id); !removed) return removed;
  }
  return {};
}

}  // namespace slipstream
