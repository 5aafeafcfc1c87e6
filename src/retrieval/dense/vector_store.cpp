#include "retrieval/dense/vector_store.h"

#include "base/format.h"

namespace slipstream {
namespace {

constexpr std::size_t kPendingBytesMax = std::size_t{8} << 20;  // of one chunk

template <typename... Values>
Result<void> run_with(Database& database, const char* sql, const Values&... values) {
  Result<Statement> statement = database.prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  statement->bind(values...);
  return statement->run();
}

Result<std::string> unpack_text(FrameDecoder& decoder, std::span<const std::byte> frame) {
  const Result<std::uint64_t> n_bytes = FrameDecoder::content_bytes(frame);
  if (!n_bytes) return std::unexpected(n_bytes.error());
  if (*n_bytes > kPendingBytesMax)
    return fail(Code::kCorrupt, "the index has a chunk that is too long");
  std::string text(*n_bytes, '\0');
  if (Result<void> done = decoder.decode(frame, std::as_writable_bytes(std::span(text))); !done) {
    return std::unexpected(done.error());
  }
  return text;
}

}  // namespace

Result<std::optional<EmbedderInfo>> find_embedder(Database& database) {
  Result<Statement> select =
      database.prepare("SELECT id, path, n_dimensions, n_changes FROM embedder");
  if (!select) return std::unexpected(select.error());
  const Result<bool> has_row = select->step();
  if (!has_row) return std::unexpected(has_row.error());
  if (!*has_row) return std::nullopt;
  return EmbedderInfo{.id = std::string(select->text(0)),
                      .path = std::string(select->text(1)),
                      .n_dimensions = static_cast<int>(select->integer(2)),
                      .n_changes = select->integer(3)};
}

Result<void> set_embedder(Database& database, const EmbedderInfo& embedder) {
  Result<Transaction> transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  const Result<std::optional<EmbedderInfo>> before = find_embedder(database);
  if (!before) return std::unexpected(before.error());
  if (*before && (*before)->id != embedder.id) {
    if (Result<void> removed = database.run("DELETE FROM chunk_vector; DELETE FROM vector");
        !removed) {
      return removed;
    }
  }
  if (Result<void> set =
          run_with(database,
                   "INSERT INTO embedder(one, id, path, n_dimensions, n_changes) "
                   "VALUES(1, ?, ?, ?, 1) ON CONFLICT(one) DO UPDATE SET id = excluded.id, "
                   "path = excluded.path, n_dimensions = excluded.n_dimensions, "
                   "n_changes = n_changes + 1",
                   embedder.id, embedder.path, embedder.n_dimensions);
      !set) {
    return set;
  }
  return transaction->commit();
}

Result<void> remove_embedder(Database& database) {
  Result<Transaction> transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  if (Result<void> removed =
          database.run("DELETE FROM chunk_vector; DELETE FROM vector; DELETE FROM embedder");
      !removed) {
    return removed;
  }
  return transaction->commit();
}

Result<VectorCounts> count_vectors(Database& database, std::optional<ProjectId> project) {
  Result<Statement> select = database.prepare(
      "SELECT count(chunk_vector.chunk), count(*) FROM content JOIN chunk ON chunk.content = "
      "content.id "
      "LEFT JOIN chunk_vector ON chunk_vector.chunk = chunk.id "
      "WHERE content.n_files > 0 AND (?1 = 0 OR content.project = ?1)");
  if (!select) return std::unexpected(select.error());
  select->bind(project.value_or(0));
  const Result<bool> has_row = select->step();
  if (!has_row) return std::unexpected(has_row.error());
  return VectorCounts{.n_with = select->integer(0),
                      .n_without = select->integer(1) - select->integer(0)};
}

std::string text_to_embed(std::string_view names, std::string_view text) {
  std::string whole(names);
  if (!whole.empty()) whole += '\n';
  whole += text;
  return whole;
}

Result<std::vector<VectorStore::Pending>> VectorStore::pending(ChunkId below, int n_max) {
  Result<Statement> select = database_.prepare(
      "SELECT chunk.id, chunk.names, chunk.text FROM chunk "
      "JOIN content ON content.id = chunk.content AND content.n_files > 0 "
      "WHERE chunk.id < ? AND NOT EXISTS (SELECT 1 FROM chunk_vector WHERE chunk_vector.chunk = "
      "chunk.id) "
      "ORDER BY chunk.id DESC LIMIT ?");
  if (!select) return std::unexpected(select.error());
  select->bind(below, n_max);
  std::vector<Pending> found;
  while (true) {
    const Result<bool> has_row = select->step();
    if (!has_row) return std::unexpected(has_row.error());
    if (!*has_row) return found;
    const Result<std::string> text = unpack_text(decoder_, select->bytes(2));
    if (!text) return std::unexpected(text.error());
    Pending pending{
        .chunk = select->integer(0), .text = text_to_embed(select->text(1), *text), .hash = {}};
    pending.hash = content_hash(pending.text, "");
    found.push_back(std::move(pending));
  }
}

Result<bool> VectorStore::is_known(const ContentHash& hash) {
  Result<Statement> select = database_.prepare("SELECT 1 FROM vector WHERE hash = ?");
  if (!select) return std::unexpected(select.error());
  select->bind(std::span<const std::byte>(hash));
  return select->step();
}

Result<void> VectorStore::add(const std::string& embedder_id, std::span<const New> vectors) {
  Result<Transaction> transaction = Transaction::begin(database_);
  if (!transaction) return std::unexpected(transaction.error());
  const Result<std::optional<EmbedderInfo>> embedder = find_embedder(database_);
  if (!embedder) return std::unexpected(embedder.error());
  if (!*embedder || (*embedder)->id != embedder_id) {
    return fail(Code::kCancelled, "the index has another embedder by now");
  }
  Result<Statement> add_vector =
      database_.prepare("INSERT OR IGNORE INTO vector(hash, packed) VALUES(?, ?)");
  Result<Statement> add_link = database_.prepare(
      "INSERT OR REPLACE INTO chunk_vector(chunk, vector) SELECT ?, id FROM vector WHERE hash = ?");
  if (!add_vector || !add_link) {
    return std::unexpected(add_vector ? add_link.error() : add_vector.error());
  }
  for (const New& one : vectors) {
    if (one.vector) {
      const std::vector<std::byte> bytes = bytes_of(*one.vector);
      add_vector->bind(std::span<const std::byte>(one.hash), std::span<const std::byte>(bytes));
      if (Result<void> added = add_vector->run(); !added) return added;
    }
    add_link->bind(one.chunk, std::span<const std::byte>(one.hash));
    if (Result<void> added = add_link->run(); !added) return added;
  }
  if (Result<void> counted = database_.run("UPDATE embedder SET n_changes = n_changes + 1");
      !counted) {
    return counted;
  }
  return transaction->commit();
}

Result<void> VectorStore::forget_unused() {
  Result<Transaction> transaction = Transaction::begin(database_);
  if (!transaction) return std::unexpected(transaction.error());
  if (Result<void> removed =
          database_.run("DELETE FROM chunk_vector WHERE chunk NOT IN (SELECT id FROM chunk);"
                        "DELETE FROM vector WHERE id NOT IN (SELECT vector FROM chunk_vector)");
      !removed) {
    return removed;
  }
  return transaction->commit();
}

}  // namespace slipstream
