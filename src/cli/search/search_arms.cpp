// search_arms INDEX QUERIES: what an index answers to queries, a line each, by words, by meaning,
// by both and with a reranker, and how fast. tests/retrieval/quality.py compares the answers with
// judgments.
//
// Prints a line for each place: query number, path, first line, last line, score, score of its
// words, nearness of its meaning (empty: none), with tabs between; and percentiles to standard
// error.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "cli/search/model_adapters.h"
#include "retrieval/search/searcher.h"

namespace {

using namespace slipstream;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string index;
  std::string queries;
  std::string embedder;
  std::string ranker;
  std::string plugin;   // whose kernels read; empty: stock's do
  double meaning = -1;  // below 0: what is best for the kind of query
  int n_results = 10;
  int n_of_file = 3;
  int n_threads = 1;
};

struct Answers {
  std::vector<std::string> places;
  std::vector<double> times_ms;
  std::vector<std::string> problems;
};

std::string lines_of(std::size_t query, const SearchAnswer& answer) {
  std::string lines;
  for (const Found& found : answer.found) {
    lines += format_text("{}\t{}\t{}\t{}\t{:.5f}\t{:.5f}\t{}\n", query, found.path,
                         found.first_line, found.last_line, found.score, found.words,
                         found.nearness ? format_text("{:.5f}", *found.nearness) : std::string());
  }
  return lines;
}

Answers ask_all(const Options& options, const std::vector<std::string>& queries,
                const SearchModels& models) {
  Answers answers{.places = std::vector<std::string>(queries.size()),
                  .times_ms = std::vector<double>(queries.size()),
                  .problems = std::vector<std::string>(queries.size())};
  std::atomic<std::size_t> next = 0;
  const auto ask = [&] {
    const Result<std::unique_ptr<Searcher>> searcher = Searcher::open(options.index, models);
    for (std::size_t i = next++; i < queries.size(); i = next++) {
      if (!searcher) {
        answers.problems[i] = searcher.error().message;
        continue;
      }
      SearchRequest request{.query = queries[i],
                            .n_results_max = options.n_results,
                            .n_of_file_max = options.n_of_file};
      if (options.meaning >= 0) request.meaning = options.meaning;
      const auto began = Clock::now();
      const Result<SearchAnswer> answer = (*searcher)->search(request);
      answers.times_ms[i] = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
      answers.problems[i] = answer ? answer->problem : answer.error().message;
      if (answer) answers.places[i] = lines_of(i, *answer);
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < options.n_threads; ++i) threads.emplace_back(ask);
  return answers;
}

int complain(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

int run(const Options& options) {
  std::vector<std::string> queries;
  std::ifstream file(options.queries);
  for (std::string line; std::getline(file, line);) queries.push_back(line);
  if (queries.empty()) {
    std::fprintf(stderr, "no queries in %s\n", options.queries.c_str());
    return 2;
  }
  VectorCache cache;
  std::unique_ptr<TextEmbedder> embedder;
  std::unique_ptr<TextRanker> ranker;
  if (!options.embedder.empty()) {
    // One thread computes a query: there are others that ask.
    auto opened =
        EmbeddingModel::load({.path = options.embedder, .plugin = options.plugin, .n_threads = 1});
    if (!opened) return complain(opened.error());
    embedder = std::make_unique<search::ModelEmbedder>(std::move(*opened));
  }
  if (!options.ranker.empty()) {
    auto opened = RankingModel::load({.path = options.ranker, .plugin = options.plugin});
    if (!opened) return complain(opened.error());
    ranker = std::make_unique<search::ModelRanker>(std::move(*opened));
  }
  const SearchModels models{.vectors = &cache, .embedder = embedder.get(), .ranker = ranker.get()};
  if (options.n_threads > 1) (void)ask_all(options, queries, models);  // warms the system's cache
  Answers answers = ask_all(options, queries, models);
  std::size_t n_problems = 0;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    std::fputs(answers.places[i].c_str(), stdout);
    if (answers.problems[i].empty()) continue;
    if (n_problems++ == 0) std::fprintf(stderr, "%s\n", answers.problems[i].c_str());
  }
  std::ranges::sort(answers.times_ms);
  const auto percentile = [&](double share) {
    const auto last = static_cast<double>(queries.size() - 1);
    return answers.times_ms[static_cast<std::size_t>(std::lround(share * last))];
  };
  std::fprintf(stderr, "%zu queries, %d threads: p50 %.1f ms, p95 %.1f ms, %zu with a problem\n",
               queries.size(), options.n_threads, percentile(0.5), percentile(0.95), n_problems);
  return n_problems == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("What an index answers, by words, by meaning and by both");
  Options options;
  app.add_option("index", options.index)->required();
  app.add_option("queries", options.queries, "A file, a query in each line")->required();
  app.add_option("--embedder", options.embedder, "A GGUF file");
  app.add_option("--reranker", options.ranker, "A GGUF file");
  app.add_option("--plugin", options.plugin, "libggml-turbo.so, whose kernels read");
  app.add_option("--meaning", options.meaning,
                 "From 0 (only words) to 1; default: by the kind of query");
  app.add_option("-n", options.n_results);
  app.add_option("--of-file", options.n_of_file);
  app.add_option("-t,--threads", options.n_threads, "That ask at once")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return run(options);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
