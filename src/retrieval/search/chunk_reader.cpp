#include "retrieval/search/chunk_reader.h"

#include <sys/stat.h>

#include "retrieval/retrieval_limits.h"

namespace slipstream {

Result<std::optional<StoredChunk>> ChunkReader::read(ProjectId project, ChunkId chunk) {
  Result<Statement> row = database_.prepare(
      "SELECT content.id, file.path, chunk.first_line, chunk.last_line, chunk.names, chunk.text, "
      "content.is_converted, file.n_bytes, file.modified_ns, file.changed_ns, file.inode "
      "FROM chunk JOIN content ON content.id = chunk.content JOIN file ON file.content = "
      "content.id "
      "WHERE chunk.id = ? AND content.project = ? ORDER BY length(file.path), file.path LIMIT 1");
  if (!row) return std::unexpected(row.error());
  row->bind(chunk, project);
  const Result<bool> has_row = row->step();
  if (!has_row) return std::unexpected(has_row.error());
  if (!*has_row) return std::nullopt;
  Result<std::string> text = unpack(row->bytes(5));
  if (!text) return std::unexpected(text.error());
  return StoredChunk{.content = row->integer(0),
                     .path = std::string(row->text(1)),
                     .first_line = static_cast<int>(row->integer(2)),
                     .last_line = static_cast<int>(row->integer(3)),
                     .names = std::string(row->text(4)),
                     .text = std::move(*text),
                     .is_converted = row->integer(6) != 0,
                     .stamp = {.n_bytes = row->integer(7),
                               .modified_ns = row->integer(8),
                               .changed_ns = row->integer(9),
                               .inode = row->integer(10)}};
}

Result<std::string> ChunkReader::unpack(std::span<const std::byte> frame) {
  const Result<std::uint64_t> n_bytes = FrameDecoder::content_bytes(frame);
  if (!n_bytes) return std::unexpected(n_bytes.error());
  // A line is never cut, so a chunk can be as long as a file. In UTF-8 some texts become longer.
  if (*n_bytes > 2 * kRetrievalLimits.file_bytes_max) {
    return fail(Code::kCorrupt, "the index has a chunk that is too long");
  }
  std::string text(*n_bytes, '\0');
  if (Result<void> done = decoder_.decode(frame, std::as_writable_bytes(std::span(text))); !done) {
    return std::unexpected(done.error());
  }
  return text;
}

bool has_changed(const std::string& root, const std::string& path, const FileStamp& stamp) {
  struct stat status{};
  const std::string file = root + "/" + path;
  if (::lstat(file.c_str(), &status) != 0) return true;
  const FileStamp now = stamp_of(status);
  return now.n_bytes != stamp.n_bytes || now.modified_ns != stamp.modified_ns;
}

}  // namespace slipstream
