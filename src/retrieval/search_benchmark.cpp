// search_benchmark INDEX QUERIES [THREADS] [REPEATS] [PLACES]: how fast an index answers queries, a
// line each, when several threads ask at once, each with a Searcher of its own. Prints percentiles,
// and the first PLACES of each query: its number, path, first and last line, a tab between them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "retrieval/search/searcher.h"

namespace {

using namespace slipstream;
using Clock = std::chrono::steady_clock;

double percentile(const std::vector<double>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(share * last + 0.5)];
}

int run(const std::string& index, const std::vector<std::string>& queries, int n_threads,
        int n_repeats, int n_shown) {
  std::vector<double> times(queries.size() * static_cast<std::size_t>(n_repeats));
  std::vector<std::string> found(queries.size());
  std::atomic<std::size_t> next = 0;
  std::atomic<int> n_failed = 0;
  const auto ask = [&](std::size_t n_all, bool counts) {
    const Result<std::unique_ptr<Searcher>> searcher = Searcher::open(index);
    if (!searcher) {
      std::fprintf(stderr, "%s\n", searcher.error().message.c_str());
      ++n_failed;
      return;
    }
    for (std::size_t i = next++; i < n_all; i = next++) {
      const auto began = Clock::now();
      const Result<SearchAnswer> answer = (*searcher)->search(
          {.query = queries[i % queries.size()], .n_results_max = n_shown > 0 ? n_shown : 8});
      if (counts)
        times[i] = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
      if (!answer) ++n_failed;
      if (!answer || i >= queries.size() || !counts || n_shown == 0) continue;
      for (const Found& place : answer->found) {
        found[i] += std::to_string(i) + "\t" + place.path + "\t" +
                    std::to_string(place.first_line) + "\t" + std::to_string(place.last_line) +
                    "\n";
      }
    }
  };
  const auto ask_together = [&](std::size_t n_all, bool counts) {
    next = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < n_threads; ++i) threads.emplace_back(ask, n_all, counts);
  };
  ask_together(queries.size(), false);  // warms the system's cache
  const auto began = Clock::now();
  ask_together(times.size(), true);
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  for (const std::string& places : found) std::fputs(places.c_str(), stdout);
  std::ranges::sort(times);
  std::fprintf(
      stderr,
      "%zu queries, %d threads: p50 %.1f ms, p95 %.1f ms, p99 %.1f ms, most %.1f ms, %.0f/s, "
      "%d failed\n",
      times.size(), n_threads, percentile(times, 0.5), percentile(times, 0.95),
      percentile(times, 0.99), times.back(), static_cast<double>(times.size()) / seconds,
      n_failed.load());
  return n_failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto number = [&](std::size_t i, int otherwise) {
    return arguments.size() > i ? std::max(std::atoi(arguments[i].c_str()), 0) : otherwise;
  };
  if (arguments.size() < 2) {
    std::fputs("search_benchmark INDEX QUERIES [THREADS] [REPEATS] [PLACES]\n", stderr);
    return 2;
  }
  std::vector<std::string> queries;
  std::ifstream file(arguments[1]);
  for (std::string line; std::getline(file, line);) queries.push_back(line);
  if (queries.empty()) {
    std::fprintf(stderr, "no queries in %s\n", arguments[1].c_str());
    return 2;
  }
  return run(arguments[0], queries, std::max(number(2, 1), 1), std::max(number(3, 1), 1),
             number(4, 0));
}
