// FileWork: what is done with a file without the database: it is read, outlined and cut.
//
// Threads: thread-safe, each with an Outliner of its own. Errors: none: see FileWork::problem.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "retrieval/content/outliner.h"
#include "retrieval/content/text_of_file.h"
#include "retrieval/files/file_list.h"
#include "retrieval/store/content_writer.h"

namespace slipstream {

struct FileWork {
  std::string path;
  FileStamp stamp;                 // of what was read
  std::optional<Content> content;  // of which only the hash is there if the text is known
  std::optional<Error> problem;    // why it has no content; kNotFound: it is gone
};

// Whether the project has a text already.
using IsKnown = std::function<bool(const ContentHash&)>;

// A text with its symbols and chunks.
[[nodiscard]] Content content_of(FileText read, std::string_view path, const IsKnown& is_known,
                                 Outliner& outliner);
// root: a descriptor of the project's root.
[[nodiscard]] FileWork work_on_file(int root, const ListedFile& file, const IsKnown& is_known,
                                    Outliner& outliner);

}  // namespace slipstream
