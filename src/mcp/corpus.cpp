#include "mcp/corpus.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/format.h"
#include "mcp/mcp_limits.h"

namespace slipstream {
namespace {

constexpr std::size_t kIdleMax = 4;  // connections that are kept

}  // namespace

Result<std::string> root_in_index(Database& database, const std::string& folder) {
  const Result<std::string> root = project_root(folder);
  if (!root) return root;
  const Result<std::vector<Project>> projects = list_projects(database);
  if (!projects) return std::unexpected(projects.error());
  for (const Project& project : *projects) {
    if (lies_in(*root, project.root)) return project.root;
  }
  return add_project(database, *root).transform([](const Project& added) { return added.root; });
}

Result<std::unique_ptr<Corpus>> Corpus::open(const CorpusOptions& options) {
  std::set<std::string> roots;
  {
    Result<Database> database = open_index(options.index_path);
    if (!database) return std::unexpected(database.error());
    for (const std::string& folder : options.folders) {
      Result<std::string> root = root_in_index(*database, folder);
      if (!root) return std::unexpected(root.error());
      roots.insert(std::move(*root));
    }
  }
  auto service = IndexService::start({.path = options.index_path, .n_threads = options.n_threads});
  if (!service) return std::unexpected(service.error());
  std::unique_ptr<Corpus> corpus(new Corpus(options, std::move(*service)));
  corpus->roots_ = std::move(roots);
  return corpus;
}

Corpus::Reader::~Reader() {
  if (!tools_) return;
  const MutexLock lock(corpus_->mutex_);
  if (corpus_->idle_.size() < kIdleMax) corpus_->idle_.push_back(std::move(tools_));
}

Result<Corpus::Reader> Corpus::reader(std::shared_ptr<const ProjectRights> rights) {
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      auto tools = std::move(idle_.back());
      idle_.pop_back();
      return Reader(*this, std::move(tools), std::move(rights));
    }
  }
  Result<std::unique_ptr<Searcher>> searcher = Searcher::open(index_path_);
  if (!searcher) return std::unexpected(searcher.error());
  return Reader(*this, std::make_unique<Reader::Tools>(std::move(*searcher)), std::move(rights));
}

Result<std::vector<Project>> Corpus::Reader::projects() {
  Result<std::vector<Project>> projects = list_projects(database());
  if (!projects) return projects;
  const std::set<std::string>& roots = corpus_->roots_;
  std::erase_if(*projects, [&](const Project& project) {
    return (!roots.empty() && !roots.contains(project.root)) ||
           (rights_ && !rights_->show(project.root));
  });
  return projects;
}

Result<Project> Corpus::add(const std::string& folder) {
  if (!clients_may_add_) {
    return fail(Code::kPermission,
                "folders cannot be added from here: ask the user to run "
                "'slipstream index add FOLDER'");
  }
  if (!folder.starts_with('/')) {
    return fail(Code::kInvalidArgument,
                "the folder must be a whole path, such as /home/ann/project");
  }
  const Result<std::string> root = project_root(folder);
  if (!root) return std::unexpected(root.error());
  Result<Database> database = open_index(index_path_);
  if (!database) return std::unexpected(database.error());
  Result<Project> project = add_project(*database, *root);
  if (project) service_->wake();
  return project;
}

Freshness Corpus::sync(Reader& reader, std::span<Project> projects) {
  const bool is_synced = service_->sync(kMcpLimits.sync_time_max);
  for (Project& project : projects) {
    if (Result<std::optional<Project>> now =
            slipstream::find_project(reader.database(), project.id);
        now && *now) {
      project = std::move(**now);
    }
  }
  std::string note = what_is_not_fresh(projects);
  if (!is_synced && note.empty()) note = "Files are still being read.";
  return {.is_fresh = is_synced && note.empty(), .note = std::move(note)};
}

Result<void> Corpus::wait_until_fresh(std::chrono::milliseconds time_max) {
  constexpr std::chrono::milliseconds kLookEvery(200);
  struct Waiting {
    std::atomic<int>& n;
    explicit Waiting(std::atomic<int>& counter) : n(counter) { ++n; }
    ~Waiting() { --n; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
  };
  const Waiting waiting(n_waiting_);
  if (n_waiting_ > kMcpLimits.waiting_max) {
    return fail(Code::kOverloaded, "others wait already: ask index_status now and then instead");
  }
  const auto until = std::chrono::steady_clock::now() + time_max;
  while (std::chrono::steady_clock::now() < until && !stop_.stop_requested()) {
    if (service_->sync(kLookEvery)) break;
  }
  return {};
}

Result<Project> CorpusView::add(const std::string& folder) {
  if (rights_ && corpus_.clients_may_add()) {
    const Result<std::string> root = project_root(folder);
    if (!root) return std::unexpected(root.error());
    if (!rights_->show(*root)) {
      return fail(Code::kPermission, format_text("{} belongs to other clients", *root));
    }
  }
  return corpus_.add(folder);
}

Result<SearchAnswer> CorpusView::search(Corpus::Reader& reader, std::span<const Project> projects,
                                        SearchRequest request, bool are_all) const {
  if (are_all && shows_all()) return reader.searcher().search(request);
  SearchAnswer all{.found = {}, .is_nothing_relevant = true, .was_cut = false};
  for (const Project& project : projects) {
    request.project = project.id;
    Result<SearchAnswer> answer = reader.searcher().search(request);
    if (!answer) return answer;
    all.is_nothing_relevant &= answer->is_nothing_relevant;
    all.was_cut |= answer->was_cut;
    std::ranges::move(answer->found, std::back_inserter(all.found));
  }
  std::ranges::stable_sort(all.found, std::greater(), &Found::score);
  if (std::ssize(all.found) > request.n_results_max) {
    all.found.resize(static_cast<std::size_t>(request.n_results_max));
  }
  return all;
}

Result<Project> choose_project(std::span<const Project> projects, std::string_view named) {
  while (named.size() > 1 && named.ends_with('/')) named.remove_suffix(1);
  const Project* by_name = nullptr;
  int n_by_name = 0;
  std::string roots;
  for (const Project& project : projects) {
    if (lies_in(named, project.root)) return project;
    if (project.root.ends_with("/" + std::string(named))) {
      by_name = &project;
      ++n_by_name;
    }
    roots += (roots.empty() ? "" : ", ") + project.root;
  }
  if (n_by_name == 1) return *by_name;
  if (roots.empty()) {
    return fail(Code::kNotFound,
                "no project is in the index: the user adds one with "
                "'slipstream index add FOLDER'");
  }
  if (n_by_name > 1) {
    return fail(Code::kInvalidArgument, "several projects have this name: use one of " + roots);
  }
  return fail(Code::kNotFound, "there is no such project: there are " + roots);
}

std::string what_is_not_fresh(std::span<const Project> projects) {
  std::string text;
  for (const Project& project : projects) {
    std::string state;
    if (!project.problem.empty()) {
      state = "could not be brought up to date: " + project.problem;
    } else if (project.n_all > 0) {
      state = format_text("is being read: {} % done", 100 * project.n_done / project.n_all);
    } else if (!project.is_complete) {
      state = "has not been read yet";
    }
    if (state.empty()) continue;
    text += format_text("{}{} {}.", text.empty() ? "" : " ", project.root, state);
  }
  return text;
}

}  // namespace slipstream
