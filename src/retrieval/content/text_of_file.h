// read_text(): the text of a file, as UTF-8, or why it has none that is worth searching.
//
// Texts are read as UTF-8, as UTF-16 with a mark at the start, or else as Windows-1252, the usual
// encoding of old Western texts. HTML loses its markup but keeps its lines. PDF and office files are
// converted by programs of their own (converter.h).
//
// Threads: thread-safe.
// Errors:  refusals: kUnsupported, with a reason of a few words ("binary", "larger than 5 MiB"). Those
//          of reading: kNotFound for a file that is gone, kIo, kPermission.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "retrieval/files/file_list.h"

namespace slipstream {

struct FileText {
  std::string text;  // UTF-8, without a byte order mark
  FileStamp stamp;   // of the file that was read
  // Lines are those of the text, not of the file.
  bool is_converted = false;
  // What its outline is made of; empty: the text. The lines are the same.
  std::string source = {};
};

// path: relative to the folder that the descriptor is of. No part of it may be a link.
[[nodiscard]] Result<FileText> read_text(int folder, const std::string& path);

// The same for bytes; name tells the kind. For tests, and for what has no file.
[[nodiscard]] Result<FileText> text_of_bytes(std::string bytes, std::string_view name);

}  // namespace slipstream
