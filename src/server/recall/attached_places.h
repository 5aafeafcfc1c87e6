// find_attached(): what of the files attached to a chat goes before its message.
//
// A file that the conversation does not show yet is given whole if it fits. Of others that are new
// the beginning is given, so that there is something to say of them whatever was asked, and of all
// what answers the message.
//
// Threads: thread-compatible (AttachedFiles). Errors: those of the index.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/attachments/attached_files.h"
#include "server/recall/place_writer.h"

namespace slipstream {

struct AttachedQuestion {
  std::string chat;
  std::string text;
  std::span<const IndexedFile> files;   // all of the chat
  std::span<const RecallSource> shown;  // what the conversation has
  int n_found_tokens_max = 0;           // of what is not a whole file
};

// A file of the chat, as the place of all its lines.
[[nodiscard]] RecallSource source_of(const std::string& chat, const IndexedFile& file);

[[nodiscard]] Result<void> find_attached(AttachedFiles& attached, const AttachedQuestion& question,
                                         PlaceWriter& writer);

}  // namespace slipstream
