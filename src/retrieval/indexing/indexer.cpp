#include "retrieval/indexing/indexer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <semaphore>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/bounded_queue.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "retrieval/files/git_rules.h"
#include "retrieval/files/secrets.h"
#include "retrieval/indexing/file_work.h"
#include "retrieval/retrieval_limits.h"
#include "retrieval/store/content_writer.h"

namespace slipstream {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kCommitEvery(1);
// Files that are read but not written yet, of at most RetrievalLimits::file_bytes_max each.
constexpr std::ptrdiff_t kReadAheadMax = 16;
// So few files are read by the caller itself.
constexpr std::size_t kFewFiles = 16;
// What is kept of texts that no file has any more: as much as would make the index twice as large.
constexpr std::int64_t kUnusedBytesMin = std::int64_t{64} << 20;

struct HashOfHash {
  std::size_t operator()(const ContentHash& hash) const {
    std::size_t value = 0;
    std::memcpy(&value, hash.data(), sizeof(value));
    return value;
  }
};
using KnownHashes = std::unordered_set<ContentHash, HashOfHash>;
using KnownFiles = std::unordered_map<std::string, FileStamp>;

Result<KnownHashes> known_hashes(Database& database, ProjectId project) {
  Result<Statement> select = database.prepare("SELECT hash FROM content WHERE project = ?");
  if (!select) return std::unexpected(select.error());
  select->bind(project);
  KnownHashes known;
  while (true) {
    const Result<bool> has_row = select->step();
    if (!has_row) return std::unexpected(has_row.error());
    if (!*has_row) return known;
    ContentHash hash{};
    const std::span<const std::byte> bytes = select->bytes(0);
    if (bytes.size() != hash.size()) continue;
    std::ranges::copy(bytes, hash.begin());
    known.insert(hash);
  }
}

Result<KnownFiles> known_files(Database& database, ProjectId project) {
  Result<Statement> select = database.prepare(
      "SELECT path, n_bytes, modified_ns, changed_ns, inode FROM file WHERE project = ? "
      "AND ifnull(refusal, '') NOT LIKE 'needs %'");  // a package that may be there now
  if (!select) return std::unexpected(select.error());
  select->bind(project);
  KnownFiles known;
  while (true) {
    const Result<bool> has_row = select->step();
    if (!has_row) return std::unexpected(has_row.error());
    if (!*has_row) return known;
    known.emplace(select->text(0), FileStamp{.n_bytes = select->integer(1),
                                             .modified_ns = select->integer(2),
                                             .changed_ns = select->integer(3),
                                             .inode = select->integer(4)});
  }
}

}  // namespace

// One update: the files to look at, and what is written of them.
class Indexer::Run {
 public:
  Run(Indexer& indexer, const Project& project, const std::stop_token& stop,
      const OnProgress& on_progress)
      : indexer_(indexer),
        database_(indexer.database_),
        project_(project),
        stop_(stop),
        on_progress_(on_progress) {}

  Result<UpdateSummary> update_all() {
    Result<FileList> list = list_files(project_.root, stop_);
    if (!list) return std::unexpected(list.error());
    Result<KnownFiles> known = known_files(database_, project_.id);
    if (!known) return std::unexpected(known.error());
    summary_.n_files = static_cast<std::int64_t>(list->files.size());
    for (ListedFile& file : list->files) {
      const auto found = known->find(file.path);
      const bool is_same = found != known->end() && found->second == file.stamp;
      if (!is_same) files_.push_back(std::move(file));
      if (found != known->end()) known->erase(found);
    }
    for (const auto& [path, stamp] : *known) gone_.push_back(path);
    const Result<void> done = run(files_.size() > kFewFiles);
    if (!done) return std::unexpected(done.error());
    if (Result<void> marked = set_fresh(database_, project_.id, began_ms_, list->n_secret);
        !marked) {
      return std::unexpected(marked.error());
    }
    summary_.folders = std::move(list->folders);
    return summarized();
  }

  Result<UpdateSummary> update_some(std::span<const std::string> paths) {
    summary_.n_files = static_cast<std::int64_t>(paths.size());
    const Result<UniqueFd> root = open_file(project_.root, O_RDONLY | O_DIRECTORY);
    if (!root) return std::unexpected(root.error());
    Result<std::optional<GitRules>> rules = GitRules::find(project_.root);
    if (!rules) return std::unexpected(rules.error());
    for (const std::string& path : paths) {
      struct stat status{};
      const bool is_there =
          ::fstatat(root->get(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
          S_ISREG(status.st_mode) && belongs(path, *rules);
      if (is_there) {
        files_.push_back({.path = path, .stamp = stamp_of(status)});
      } else {
        gone_.push_back(path);
      }
    }
    const Result<void> done = run(files_.size() > kFewFiles);
    if (!done) return std::unexpected(done.error());
    return summarized();
  }

 private:
  // As list_files() would decide. Files of a repository within the project come with their folder.
  [[nodiscard]] bool belongs(const std::string& path, std::optional<GitRules>& rules) const {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (is_secret_file(name)) return false;
    if (!rules) return true;
    const std::string absolute = project_.root + "/" + path;
    if (!absolute.starts_with(rules->work_tree())) return true;
    return rules->has_file(absolute.substr(rules->work_tree().size()));
  }

  UpdateSummary summarized() {
    summary_.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    return std::move(summary_);
  }

  Result<void> run(bool is_large) {
    for (const ListedFile& file : files_) n_bytes_all_ += file.stamp.n_bytes;
    root_fd_ = open_file(project_.root, O_RDONLY | O_DIRECTORY);
    if (!root_fd_) return std::unexpected(root_fd_.error());
    Result<ContentWriter> writer = ContentWriter::create(database_, project_.id);
    if (!writer) return std::unexpected(writer.error());
    writer_ = &*writer;
    Result<void> done = begin();
    for (const std::string& path : gone_) {
      if (done) done = writer_->remove_file(path);
    }
    summary_.n_removed = static_cast<std::int64_t>(gone_.size());
    if (done) done = is_large ? read_with_threads() : read_here();
    if (done && (is_large || !gone_.empty())) done = forget_unused();
    if (done) done = commit();
    transaction_.reset();
    return done;
  }

  Result<void> forget_unused() {
    Result<Statement> sum = database_.prepare(
        "SELECT ifnull(sum(n_bytes), 0) FROM content WHERE project = ? AND n_files > 0");
    if (!sum) return std::unexpected(sum.error());
    sum->bind(project_.id);
    const Result<bool> has_row = sum->step();
    if (!has_row) return std::unexpected(has_row.error());
    return writer_->forget_unused(std::max(kUnusedBytesMin, sum->integer(0)));
  }

  Result<void> begin() {
    Result<Transaction> transaction = Transaction::begin(database_);
    if (!transaction) return std::unexpected(transaction.error());
    transaction_ = std::make_unique<Transaction>(std::move(*transaction));
    began_transaction_ = Clock::now();
    // Another process may have removed the project between two transactions.
    const Result<std::optional<Project>> project = find_project(database_, project_.id);
    if (!project) return std::unexpected(project.error());
    if (!*project) return fail(Code::kNotFound, format_text("{} was removed", project_.root));
    return {};
  }
  Result<void> commit() {
    Result<void> committed = transaction_->commit();
    if (committed) transaction_.reset();
    return committed;
  }

  Result<void> read_here() {
    const IsKnown is_known = [this](const ContentHash& hash) {
      const Result<std::optional<ContentId>> found = writer_->find(hash);
      return found && found->has_value();
    };
    for (const ListedFile& file : files_) {
      if (stop_.stop_requested()) return fail(Code::kCancelled, "stopped");
      FileWork work = work_on_file(root_fd_->get(), file, is_known, *indexer_.outliner_);
      if (Result<void> written = write(work, file.stamp); !written) return written;
    }
    return {};
  }

  // The threads take the files in order; this thread writes what they have read.
  Result<void> read_with_threads() {
    const Result<KnownHashes> hashes = known_hashes(database_, project_.id);
    if (!hashes) return std::unexpected(hashes.error());
    const IsKnown is_known = [&hashes](const ContentHash& hash) { return hashes->contains(hash); };
    struct Item {
      FileWork work;
      FileStamp listed;
    };
    BoundedQueue<Item> queue(static_cast<std::size_t>(kReadAheadMax));
    std::counting_semaphore<> room(kReadAheadMax);
    std::atomic<std::size_t> next = 0;
    std::atomic<bool> is_over = false;
    const auto read = [&] {
      Outliner outliner(kRetrievalLimits.outline_time_max);
      while (true) {
        room.acquire();
        const std::size_t i = next++;
        if (is_over || i >= files_.size()) return;
        FileWork work = work_on_file(root_fd_->get(), files_[i], is_known, outliner);
        if (!queue.try_push({std::move(work), files_[i].stamp})) return;  // there is room
      }
    };
    std::vector<std::jthread> threads;
    for (int i = 0; i < indexer_.n_threads_; ++i) threads.emplace_back(read);
    Result<void> done;
    for (std::size_t i = 0; i < files_.size() && done; ++i) {
      std::optional<Item> item = queue.pop(stop_);
      if (!item) {
        done = fail(Code::kCancelled, "stopped");
        break;
      }
      room.release();
      done = write(item->work, item->listed);
      if (done && Clock::now() - began_transaction_ > kCommitEvery) done = pause();
    }
    is_over = true;
    room.release(indexer_.n_threads_);
    return done;
  }

  // Lets others see what is there, and write their own.
  Result<void> pause() {
    if (Result<void> told = set_progress(database_, project_.id, n_bytes_done_, n_bytes_all_);
        !told) {
      return told;
    }
    if (Result<void> committed = commit(); !committed) return committed;
    return begin();
  }

  Result<void> write(FileWork& work, const FileStamp& listed) {
    n_bytes_done_ += listed.n_bytes;
    ++summary_.n_read;
    if (on_progress_) on_progress_(n_bytes_done_, n_bytes_all_);
    if (!work.content) {
      const Error problem = work.problem.value_or(Error{Code::kIo, "not read"});
      if (problem.code == Code::kNotFound) return writer_->remove_file(work.path);
      return writer_->refuse_file(work.path, work.stamp, problem.message);
    }
    summary_.n_bytes_read += work.stamp.n_bytes;
    Result<std::optional<ContentId>> id = writer_->find(work.content->hash);
    if (!id) return std::unexpected(id.error());
    if (!*id) {
      const Result<ContentId> added = writer_->add(*work.content);
      if (!added) return std::unexpected(added.error());
      ++summary_.n_written;
      *id = *added;
    }
    return writer_->set_file(work.path, work.stamp, **id);
  }

  Indexer& indexer_;
  Database& database_;
  const Project& project_;
  const std::stop_token stop_;
  const OnProgress& on_progress_;
  const Clock::time_point began_ = Clock::now();
  const std::int64_t began_ms_ = now_ms();
  Clock::time_point began_transaction_;
  Result<UniqueFd> root_fd_;
  ContentWriter* writer_ = nullptr;
  std::unique_ptr<Transaction> transaction_;
  std::vector<ListedFile> files_;  // to be read
  std::vector<std::string> gone_;
  std::int64_t n_bytes_done_ = 0;
  std::int64_t n_bytes_all_ = 0;
  UpdateSummary summary_;
};

Indexer::Indexer(Database& database, int n_threads)
    : database_(database),
      n_threads_(n_threads > 0
                     ? n_threads
                     : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))),
      outliner_(std::make_unique<Outliner>(kRetrievalLimits.outline_time_max)) {}
Indexer::~Indexer() = default;

Result<UpdateSummary> Indexer::update(const Project& project, const std::stop_token& stop,
                                      const OnProgress& on_progress) {
  return Run(*this, project, stop, on_progress).update_all();
}

Result<UpdateSummary> Indexer::update_paths(const Project& project,
                                            std::span<const std::string> paths,
                                            const std::stop_token& stop) {
  const OnProgress nothing;
  return Run(*this, project, stop, nothing).update_some(paths);
}

}  // namespace slipstream
