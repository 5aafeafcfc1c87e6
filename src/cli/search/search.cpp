#include "cli/search/search.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "cli/index/index.h"
#include "cli/search/search_models.h"
#include "retrieval/indexing/freshen.h"

namespace slipstream::search {
namespace {

constexpr std::chrono::milliseconds kWaitForWriter(2000);

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

struct Models {
  VectorCache vectors;
  std::unique_ptr<TextEmbedder> embedder;
  std::unique_ptr<TextRanker> ranker;
};

// Loads the models that this query needs. What cannot be loaded is told, and not used.
void open_models(const Options& options, Models& models) {
  const auto tell = [](const Error& error) { std::fprintf(stderr, "%s\n", error.message.c_str()); };
  const std::string query = joined(options.words);
  Words words;
  if (!options.is_by_words && weight_of_meaning(kind_of(read_query(query, words), query)) > 0) {
    Result<Database> database = open_index_to_read(index::index_path(options.index));
    const auto info = database ? find_embedder(*database) : std::unexpected(database.error());
    if (info && *info) {
      auto embedder = open_embedder((*info)->path, 0);
      if (!embedder) tell(embedder.error());
      if (embedder) models.embedder = std::move(*embedder);
    }
  }
  if (options.reranker.empty()) return;
  auto ranker = open_ranker(options.reranker, 0);
  if (!ranker) tell(ranker.error());
  if (ranker) models.ranker = std::move(*ranker);
}

Result<SearchAnswer> try_search(const Options& options) {
  const std::string path = index::index_path(options.index);
  if (::access(path.c_str(), F_OK) != 0) {
    return fail(Code::kNotFound,
                format_text("there is no index at {}: slipstream index add FOLDER makes it", path));
  }
  if (!options.is_as_it_is) {
    const Result<bool> is_fresh = freshen(path, kWaitForWriter);
    if (!is_fresh) {
      std::fprintf(stderr, "the index may be out of date: %s\n", is_fresh.error().message.c_str());
    } else if (!*is_fresh) {
      std::fputs("another process is still reading files: what is new may be missing\n", stderr);
    }
  }
  Models models;
  open_models(options, models);
  const Result<std::unique_ptr<Searcher>> searcher =
      Searcher::open(path, {.vectors = &models.vectors,
                            .embedder = models.embedder.get(),
                            .ranker = models.ranker.get()});
  if (!searcher) return std::unexpected(searcher.error());
  SearchRequest request{.query = joined(options.words),
                        .project = {},
                        .path_prefix = options.path_prefix,
                        .n_results_max = options.n_results};
  if (!options.project.empty()) {
    const Result<Project> project = find_project((*searcher)->database(), options.project);
    if (!project) return std::unexpected(project.error());
    request.project = project->id;
  }
  return (*searcher)->search(request);
}

std::string reason(const Found& found) {
  std::string text = found.defines_name ? "defines it; " : "";
  if (!found.terms.empty()) text += "has " + joined(found.terms);
  if (found.nearness) {
    text +=
        format_text("{}near in meaning, {:.2f}", found.terms.empty() ? "" : "; ", *found.nearness);
  }
  if (found.is_changed) text += "; the file has changed since";
  return text;
}

}  // namespace

std::string format_found(const Found& found, int n_lines_max) {
  std::string text = format_text("{}/{}:{}-{}  ({})\n", found.root, found.path, found.first_line,
                                 found.last_line, reason(found));
  int n_lines = 0;
  for (std::size_t at = 0; at < found.text.size(); ++n_lines) {
    const std::size_t end = std::min(found.text.find('\n', at), found.text.size());
    if (n_lines_max > 0 && n_lines == n_lines_max) {
      text += format_text("    ... {} more lines\n",
                          found.last_line - found.first_line + 1 - n_lines_max);
      break;
    }
    text += "    " + found.text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return text;
}

std::string to_json(const Found& found) {
  const nlohmann::ordered_json json = {
      {"project", found.root},
      {"path", found.path},
      {"first_line", found.first_line},
      {"last_line", found.last_line},
      {"score", found.score},
      {"terms", found.terms},
      {"nearness",
       found.nearness ? nlohmann::ordered_json(*found.nearness) : nlohmann::ordered_json()},
      {"defines_name", found.defines_name},
      {"is_changed", found.is_changed},
      {"text", found.text}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Command::Command(CLI::App& app) {
  search_ = app.add_subcommand(
      "search", "Search the folders of the index: words, names from code, or a question");
  search_
      ->add_option("query", options_.words,
                   "What to look for; \"words between quotes\" stand together")
      ->required()
      ->type_name("QUERY");
  index::add_index_option(*search_, options_.index);
  search_->add_option("--project", options_.project, "Only this folder of the index")
      ->type_name("FOLDER");
  search_
      ->add_option("--path", options_.path_prefix, "Only files whose path in the project begins so")
      ->type_name("PREFIX");
  search_->add_option("-n,--results", options_.n_results, "Places at most")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  search_->add_option("--lines", options_.n_lines, "Lines to show of each place (0: all)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  search_->add_flag("--words", options_.is_by_words,
                    "Find by words only, without the index's embedder");
  search_
      ->add_option("--reranker", options_.reranker,
                   "A GGUF model that ranks texts orders the first 20 anew")
      ->envname("SLIPSTREAM_RERANKER")
      ->type_name("MODEL");
  search_->add_flag("--json", options_.is_json, "One JSON object per place");
  search_->add_flag("--as-it-is", options_.is_as_it_is,
                    "Do not look for files that have changed first");
}

std::optional<int> Command::run() const {
  if (!search_->parsed()) return std::nullopt;
  return search(options_);
}

int search(const Options& options) {
  const Result<SearchAnswer> answer = try_search(options);
  if (!answer) {
    std::fprintf(stderr, "slipstream search: %s\n", answer.error().message.c_str());
    return 2;
  }
  for (const Found& found : answer->found) {
    const std::string text =
        options.is_json ? to_json(found) + "\n" : format_found(found, options.n_lines);
    std::fputs(text.c_str(), stdout);
  }
  if (!answer->problem.empty()) std::fprintf(stderr, "%s\n", answer->problem.c_str());
  if (answer->was_cut)
    std::fputs("the query is long: only its first terms were looked for\n", stderr);
  if (!answer->found.empty()) return 0;
  std::fputs("nothing in the index answers this\n", stderr);
  return 1;
}

}  // namespace slipstream::search
