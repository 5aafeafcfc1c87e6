#include "retrieval/indexing/file_work.h"

#include <chrono>
#include <exception>

#include "base/format.h"
#include "retrieval/content/chunker.h"

namespace slipstream {
namespace {

// Times of files have the steps of the kernel's clock. A file that changed just before it was read
// may change again without a later time.
constexpr std::int64_t kRacyNs = 20'000'000;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void fill(FileWork& work, int root, const IsKnown& is_known, Outliner& outliner) {
  const std::int64_t began_ns = now_ns();
  Result<FileText> read = read_text(root, work.path);
  if (!read) {
    work.problem = std::move(read.error());
    return;
  }
  work.stamp = read->stamp;
  if (began_ns - work.stamp.changed_ns < kRacyNs) work.stamp.changed_ns = 0;
  work.content = content_of(std::move(*read), work.path, is_known, outliner);
}

}  // namespace

Content content_of(FileText read, std::string_view path, const IsKnown& is_known,
                   Outliner& outliner) {
  Content content{.hash = content_hash(read.text, path),
                  .text = {},
                  .is_converted = read.is_converted,
                  .chunks = {},
                  .symbols = {}};
  if (!is_known(content.hash)) {
    const std::string& source = read.source.empty() ? read.text : read.source;
    content.symbols = outliner.outline(path, source);
    content.chunks = cut_into_chunks(read.text, content.symbols);
    content.text = std::move(read.text);
  }
  return content;
}

FileWork work_on_file(int root, const ListedFile& file, const IsKnown& is_known,
                      Outliner& outliner) {
  FileWork work{.path = file.path, .stamp = file.stamp, .content = {}, .problem = {}};
  try {
    fill(work, root, is_known, outliner);
  } catch (const std::exception& error) {  // memory
    work.content.reset();
    work.problem = Error{Code::kOutOfMemory, error.what()};
  }
  return work;
}

}  // namespace slipstream
