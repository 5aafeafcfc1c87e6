// ChunkReader: what an index knows of a chunk: its text, its lines, and a file that has it.
//
// Threads: as the Database. Errors: as the Database; kCorrupt for a text that cannot be unpacked.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/zstd_frame.h"
#include "retrieval/files/file_list.h"
#include "retrieval/store/schema.h"

namespace slipstream {

struct StoredChunk {
  ContentId content = 0;
  std::string
      path;  // relative to the project's root; of several files with this text, the shortest
  int first_line = 0;
  int last_line = 0;
  std::string names;
  std::string text;
  bool is_converted = false;
  FileStamp stamp;  // of the file when it was read
};

class ChunkReader {
 public:
  explicit ChunkReader(Database& database) : database_(database) {}

  // nullopt: no file of the project has it any more.
  [[nodiscard]] Result<std::optional<StoredChunk>> read(ProjectId project, ChunkId chunk);
  // A chunk's text as the index keeps it.
  [[nodiscard]] Result<std::string> unpack(std::span<const std::byte> frame);

 private:
  Database& database_;
  FrameDecoder decoder_;
};

// Whether the file is not what was read any more.
[[nodiscard]] bool has_changed(const std::string& root, const std::string& path,
                               const FileStamp& stamp);

}  // namespace slipstream
