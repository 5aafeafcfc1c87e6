#include "server/attachments/attached_files.h"

#include <optional>

#include "base/format.h"
#include "retrieval/content/outliner.h"
#include "retrieval/content/text_of_file.h"
#include "retrieval/files/secrets.h"
#include "retrieval/indexing/file_work.h"
#include "retrieval/retrieval_limits.h"
#include "retrieval/store/content_writer.h"
#include "server/attachments/attachment_limits.h"

namespace slipstream {
namespace {

// The only project of such an index. It is no folder: the texts are in the index alone.
constexpr const char* kProject = "attached";

class Writing {
 public:
  static Result<Writing> begin(const std::string& index_path) {
    Result<Database> database = open_index(index_path);
    if (!database) return std::unexpected(database.error());
    // What others lose with the machine's power they read again from files. Here there are none.
    if (Result<void> set = database->run("PRAGMA synchronous = FULL"); !set) {
      return std::unexpected(set.error());
    }
    // Removed texts do not stay in free pages.
    if (Result<void> set = database->run("PRAGMA secure_delete = ON"); !set) {
      return std::unexpected(set.error());
    }
    Result<Project> project = add_project(*database, kProject);
    if (!project) return std::unexpected(project.error());
    return Writing(std::move(*database), std::move(*project));
  }

  // Runs the change in a transaction, and removes the texts that no file has any more, with their
  // words: a full-text index keeps these until its parts are merged.
  template <typename Change>
  Result<void> run(bool removes, Change change) {
    Result<Transaction> transaction = Transaction::begin(database);
    if (!transaction) return std::unexpected(transaction.error());
    Result<ContentWriter> writer = ContentWriter::create(database, project.id);
    if (!writer) return std::unexpected(writer.error());
    Result<void> done = change(*writer);
    if (done) done = writer->forget_unused(0);
    for (const std::string& words : {chunk_words(project.id), path_words(project.id)}) {
      if (done && removes) {
        done = database.run(format_text("INSERT INTO {0}({0}) VALUES('optimize')", words));
      }
    }
    if (done) done = transaction->commit();
    return done;
  }

  Database database;
  Project project;

 private:
  Writing(Database opened, Project found)
      : database(std::move(opened)), project(std::move(found)) {}
};

}  // namespace

Result<AttachedFiles> AttachedFiles::open(const std::string& index_path) {
  Result<std::unique_ptr<Searcher>> searcher = Searcher::open(index_path);
  if (!searcher) return std::unexpected(searcher.error());
  Result<std::vector<Project>> projects = list_projects((*searcher)->database());
  if (!projects) return std::unexpected(projects.error());
  if (projects->empty()) return fail(Code::kNotFound, "no files are attached to this chat");
  return AttachedFiles(std::move(*searcher), std::move(projects->front()));
}

Result<std::vector<IndexedFile>> AttachedFiles::list() {
  return list_indexed_files(searcher_->database(), project_, "",
                            static_cast<int>(kAttachmentLimits.files_of_chat_max));
}

Result<IndexedFile> AttachedFiles::find(const std::string& name) {
  Result<IndexedFile> file = find_indexed_file(searcher_->database(), project_, name);
  if (!file && file.error().code == Code::kNotFound) {
    return fail(Code::kNotFound, format_text("no file {} is attached to this chat", name));
  }
  return file;
}

Result<std::string> AttachedFiles::text_of(const IndexedFile& file) {
  return read_indexed_file(searcher_->database(), project_, file);
}

Result<Content> content_of_attachment(const std::string& name, std::string bytes) {
  if (is_secret_file(name)) {
    return fail(Code::kUnsupported, "its name says that it holds keys or passwords");
  }
  Result<FileText> text = text_of_bytes(std::move(bytes), name);
  if (!text) return std::unexpected(text.error());
  text->is_converted = true;  // there is no file to read its lines from
  Outliner outliner(kRetrievalLimits.outline_time_max);
  const IsKnown is_known = [](const ContentHash&) { return false; };
  Content content = content_of(std::move(*text), name, is_known, outliner);
  if (content.chunks.empty()) {
    return fail(Code::kUnsupported, "it has no text; of scanned pages there are only pictures");
  }
  return content;
}

Result<void> attach_content(const std::string& index_path, const std::string& name,
                            const Content& content) {
  Result<Writing> writing = Writing::begin(index_path);
  if (!writing) return std::unexpected(writing.error());
  const bool replaces = find_indexed_file(writing->database, writing->project, name).has_value();
  return writing->run(replaces, [&](ContentWriter& writer) -> Result<void> {
    Result<std::optional<ContentId>> id = writer.find(content.hash);
    if (!id) return std::unexpected(id.error());
    if (!*id) {
      const Result<ContentId> added = writer.add(content);
      if (!added) return std::unexpected(added.error());
      *id = *added;
    }
    return writer.set_file(name, {.n_bytes = static_cast<std::int64_t>(content.text.size())}, **id);
  });
}

Result<std::size_t> detach_content(const std::string& index_path, const std::string& name) {
  Result<Writing> writing = Writing::begin(index_path);
  if (!writing) return std::unexpected(writing.error());
  const Result<IndexedFile> file = find_indexed_file(writing->database, writing->project, name);
  if (!file) return std::unexpected(file.error());
  if (Result<void> removed =
          writing->run(true, [&](ContentWriter& writer) { return writer.remove_file(name); });
      !removed) {
    return std::unexpected(removed.error());
  }
  return list_indexed_files(writing->database, writing->project, "",
                            static_cast<int>(kAttachmentLimits.files_of_chat_max))
      .transform([](const std::vector<IndexedFile>& left) { return left.size(); });
}

}  // namespace slipstream
