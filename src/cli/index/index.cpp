#include "cli/index/index.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <thread>

#include "base/file_lock.h"
#include "base/format.h"
#include "base/format_bytes.h"
#include "base/log.h"
#include "cli/index/embed.h"
#include "cli/progress.h"
#include "retrieval/content/outliner.h"
#include "retrieval/indexing/index_service.h"

namespace slipstream::index {
namespace {

using Clock = std::chrono::steady_clock;

// "12,345,678".
std::string grouped(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::string counted(std::int64_t n, std::string_view what) {
  return format_text("{} {}{}", grouped(n), what, n == 1 ? "" : "s");
}

std::string refusals(const Project& project, const ProjectCounts& counts) {
  std::string text;
  for (const auto& [reason, n] : counts.n_refused) {
    text += format_text("{}{} {}", text.empty() ? "" : ", ", grouped(n), reason);
  }
  if (project.n_secret > 0) {
    text +=
        format_text("{}{} by {} (keys, passwords)", text.empty() ? "" : ", ",
                    grouped(project.n_secret), project.n_secret == 1 ? "its name" : "their names");
  }
  return text;
}

std::string age_of(std::int64_t since_ms, std::int64_t now) {
  const std::int64_t seconds = (now - since_ms) / 1000;
  if (seconds < 120) return counted(seconds, "second") + " ago";
  if (seconds < 7200) return counted(seconds / 60, "minute") + " ago";
  if (seconds < 172800) return counted(seconds / 3600, "hour") + " ago";
  return counted(seconds / 86400, "day") + " ago";
}

void warn_without_ctags() {
  if (Outliner::is_available()) return;
  std::fputs(
      "universal-ctags is not installed: functions and headings are not known by name, and files "
      "are cut at blank lines. Install it and add the folder again.\n",
      stderr);
}

Progress progress_of(const Project& project) {
  return Progress("reading " + std::filesystem::path(project.root).filename().string());
}

double share_of(std::int64_t n_done, std::int64_t n_all) {
  return n_all > 0 ? static_cast<double>(n_done) / static_cast<double>(n_all) : 0;
}

// Another process writes the index: it finds the project by itself.
Result<void> follow_other(Database& database, const Project& project) {
  Progress progress = progress_of(project);
  while (true) {
    const Result<std::optional<Project>> now = find_project(database, project.id);
    if (!now) return std::unexpected(now.error());
    if (!*now) return fail(Code::kNotFound, format_text("{} was removed", project.root));
    if (!(*now)->problem.empty()) return fail(Code::kIo, (*now)->problem);
    if ((*now)->is_complete && (*now)->n_all == 0) return {};
    progress.show(share_of((*now)->n_done, (*now)->n_all));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

Result<UpdateSummary> update_here(Indexer& indexer, const Project& project) {
  Progress progress = progress_of(project);
  const auto began = Clock::now();
  return indexer.update(project, {}, [&](std::int64_t n_done, std::int64_t n_all) {
    const double share = share_of(n_done, n_all);
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    ProgressNote note{
        .text = format_text("{} of {}", format_bytes(static_cast<std::uint64_t>(n_done)),
                            format_bytes(static_cast<std::uint64_t>(n_all))),
        .seconds_left = {}};
    if (share > 0.02) note.seconds_left = seconds / share * (1 - share);
    progress.show(share, note);
  });
}

Result<void> try_add(const Options& options) {
  const std::string path = index_path(options.path);
  Result<Database> database = open_index(path);
  if (!database) return std::unexpected(database.error());
  warn_without_ctags();
  std::vector<Project> projects;
  for (const std::string& folder : options.folders) {
    const Result<std::string> root = project_root(folder);
    if (!root) return std::unexpected(root.error());
    Result<Project> project = add_project(*database, *root);
    if (!project) return std::unexpected(project.error());
    projects.push_back(std::move(*project));
  }
  const Result<std::optional<FileLock>> lock = FileLock::try_lock(writer_lock_path(path));
  if (!lock) return std::unexpected(lock.error());
  Indexer indexer(*database, options.n_threads);
  for (const Project& project : projects) {
    UpdateSummary update;
    if (*lock) {
      Result<UpdateSummary> updated = update_here(indexer, project);
      if (!updated) return std::unexpected(updated.error());
      update = std::move(*updated);
    } else if (Result<void> followed = follow_other(*database, project); !followed) {
      return followed;
    }
    const Result<ProjectCounts> counts = count_project(*database, project.id);
    const Result<std::optional<Project>> now = find_project(*database, project.id);
    if (!counts || !now || !*now) return std::unexpected((counts ? now.error() : counts.error()));
    std::fputs(format_update(**now, update, *counts).c_str(), stdout);
  }
  // Last: everything can be found by its words meanwhile, and if the model is gone.
  if (const Result<void> embedded = embed_new(*database, options.n_threads); !embedded) {
    std::fprintf(stderr, "no vectors of what is new: %s\n", embedded.error().message.c_str());
  }
  return {};
}

// The index if there is one: what only looks does not make one.
Result<Database> open_existing(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) {
    return fail(Code::kNotFound,
                format_text("there is no index at {}: slipstream index add FOLDER makes it", path));
  }
  return open_index(path);
}

Result<std::vector<Project>> named_projects(Database& database,
                                            const std::vector<std::string>& names) {
  if (names.empty()) return list_projects(database);
  std::vector<Project> projects;
  for (const std::string& name : names) {
    Result<Project> project = find_project(database, name);
    if (!project) return std::unexpected(project.error());
    projects.push_back(std::move(*project));
  }
  return projects;
}

Result<void> try_status(const Options& options, bool is_short) {
  const std::string path = index_path(options.path);
  Result<Database> database = open_existing(path);
  if (!database) return std::unexpected(database.error());
  const Result<std::vector<Project>> projects = named_projects(*database, options.folders);
  if (!projects) return std::unexpected(projects.error());
  for (const Project& project : *projects) {
    if (is_short) {
      std::printf("%s\n", project.root.c_str());
      continue;
    }
    const Result<ProjectCounts> counts = count_project(*database, project.id);
    if (!counts) return std::unexpected(counts.error());
    std::fputs(format_status(project, *counts, now_ms()).c_str(), stdout);
  }
  if (is_short) return {};
  const Result<std::optional<EmbedderInfo>> embedder = find_embedder(*database);
  const Result<VectorCounts> vectors = count_vectors(*database);
  if (!embedder || !vectors)
    return std::unexpected((embedder ? vectors.error() : embedder.error()));
  if (*embedder) {
    std::printf("vectors of %s: %s, %s missing\n", (*embedder)->path.c_str(),
                counted(vectors->n_with, "piece").c_str(), grouped(vectors->n_without).c_str());
  }
  std::error_code error;
  const auto n_bytes = std::filesystem::file_size(path, error);
  if (!error) std::printf("%s: %s\n", path.c_str(), format_bytes(n_bytes).c_str());
  return {};
}

Result<void> try_watch(const Options& options) {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  warn_without_ctags();
  const std::string path = index_path(options.path);
  const auto service = IndexService::start({.path = path, .n_threads = options.n_threads});
  if (!service) return std::unexpected(service.error());
  const BackgroundEmbedding embedding(path, options.n_threads);
  log::info("index.watch", {{"index", path}});
  int which = 0;
  sigwait(&stop, &which);
  return {};
}

bool asks_for(const std::vector<Project>& projects) {
  for (const Project& project : projects) std::fprintf(stderr, "  %s\n", project.root.c_str());
  std::fputs("remove what the index has of this? The files stay. [y/N] ", stderr);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

Result<void> try_rm(const Options& options) {
  Result<Database> database = open_existing(index_path(options.path));
  if (!database) return std::unexpected(database.error());
  const Result<std::vector<Project>> projects = named_projects(*database, options.folders);
  if (!projects) return std::unexpected(projects.error());
  if (!options.is_sure && !asks_for(*projects))
    return fail(Code::kCancelled, "nothing was removed");
  for (const Project& project : *projects) {
    if (Result<void> removed = remove_project(*database, project.id); !removed) return removed;
  }
  return database->run("PRAGMA incremental_vacuum");
}

int status_of(const char* command, const Result<void>& done) {
  if (done) return 0;
  std::fprintf(stderr, "slipstream index %s: %s\n", command, done.error().message.c_str());
  return 1;
}

}  // namespace

std::string format_update(const Project& project, const UpdateSummary& update,
                          const ProjectCounts& counts) {
  std::string text = format_text(
      "{}: {}, {} of text, {}", project.root, counted(counts.n_files, "file"),
      format_bytes(static_cast<std::uint64_t>(counts.n_bytes)), counted(counts.n_chunks, "piece"));
  if (update.n_files > 0) {
    text +=
        format_text("; read {} ({}), {} new, {} gone, in {:.1f} s", counted(update.n_read, "file"),
                    format_bytes(static_cast<std::uint64_t>(update.n_bytes_read)),
                    grouped(update.n_written), grouped(update.n_removed), update.seconds);
  }
  text += '\n';
  if (const std::string refused = refusals(project, counts); !refused.empty()) {
    text += format_text("not read: {}\n", refused);
  }
  return text;
}

std::string format_status(const Project& project, const ProjectCounts& counts, std::int64_t now) {
  std::string text = project.root + "\n";
  if (!project.problem.empty()) text += format_text("  problem     {}\n", project.problem);
  if (project.n_all > 0) {
    text += format_text("  being read  {:.0f} %\n", 100 * share_of(project.n_done, project.n_all));
  } else if (!project.is_complete) {
    text += "  not read yet: slipstream index add, or watch\n";
  }
  text +=
      format_text("  files       {}\n  text        {}\n  pieces      {}\n  symbols     {}\n",
                  grouped(counts.n_files), format_bytes(static_cast<std::uint64_t>(counts.n_bytes)),
                  grouped(counts.n_chunks), grouped(counts.n_symbols));
  if (const std::string refused = refusals(project, counts); !refused.empty()) {
    text += format_text("  not read    {}\n", refused);
  }
  if (project.fresh_at > 0)
    text += format_text("  checked     {}\n", age_of(project.fresh_at, now));
  return text;
}

int add(const Options& options) { return status_of("add", try_add(options)); }
int list(const Options& options) { return status_of("list", try_status(options, true)); }
int status(const Options& options) { return status_of("status", try_status(options, false)); }
int watch(const Options& options) { return status_of("watch", try_watch(options)); }
int rm(const Options& options) { return status_of("rm", try_rm(options)); }
int embed(const Options& options) { return status_of("embed", embed_index(options)); }

}  // namespace slipstream::index
