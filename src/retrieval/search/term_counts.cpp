#include "retrieval/search/term_counts.h"

#include <algorithm>

#include "base/format.h"

namespace slipstream {
namespace {

constexpr std::chrono::seconds kOldAfter(10);
constexpr std::size_t kTermsMax = 50'000;

std::string vocabulary(ProjectId project) { return format_text("temp.vocabulary_{}", project); }

}  // namespace

Result<TermCounts::Counts*> TermCounts::counts_of(ProjectId project) {
  Counts& counts = projects_[project];
  if (!counts.has_table) {
    if (Result<void> made = database_.run(
            format_text("CREATE VIRTUAL TABLE IF NOT EXISTS {} USING fts5vocab(main, {}, row)",
                        vocabulary(project), chunk_words(project)));
        !made) {
      return std::unexpected(made.error());
    }
    counts.has_table = true;
  }
  const auto now = std::chrono::steady_clock::now();
  if (counts.n_chunks >= 0 && now - counts.counted < kOldAfter) return &counts;
  const Result<std::int64_t> version = database_.version();
  if (!version) return std::unexpected(version.error());
  if (counts.version != *version || counts.n_with.size() > kTermsMax) {
    counts.n_with.clear();
    counts.n_chunks = -1;
    counts.version = *version;
  }
  counts.counted = now;
  return &counts;
}

Result<std::int64_t> TermCounts::n_chunks(ProjectId project) {
  const Result<Counts*> counts = counts_of(project);
  if (!counts) return std::unexpected(counts.error());
  if ((*counts)->n_chunks >= 0) return (*counts)->n_chunks;
  Result<Statement> count = database_.prepare(format_text(
      "SELECT count(*) FROM chunk WHERE content IN (SELECT id FROM content WHERE project = {})",
      project));
  if (!count) return std::unexpected(count.error());
  const Result<bool> has_row = count->step();
  if (!has_row) return std::unexpected(has_row.error());
  (*counts)->n_chunks = count->integer(0);
  return (*counts)->n_chunks;
}

Result<std::int64_t> TermCounts::count_term(ProjectId project, const std::string& term) {
  Result<Statement> count =
      database_.prepare(format_text("SELECT doc FROM {} WHERE term = ?", vocabulary(project)));
  if (!count) return std::unexpected(count.error());
  count->bind(term);
  const Result<bool> has_row = count->step();
  if (!has_row) return std::unexpected(has_row.error());
  return *has_row ? count->integer(0) : 0;
}

Result<std::int64_t> TermCounts::n_with(ProjectId project, const std::string& term) {
  const Result<Counts*> counts = counts_of(project);
  if (!counts) return std::unexpected(counts.error());
  if (const auto known = (*counts)->n_with.find(term); known != (*counts)->n_with.end()) {
    return known->second;
  }
  std::int64_t n_fewest = INT64_MAX;
  for (std::size_t at = 0; at < term.size();) {
    const std::size_t end = std::min(term.find(' ', at), term.size());
    const Result<std::int64_t> n = count_term(project, term.substr(at, end - at));
    if (!n) return std::unexpected(n.error());
    n_fewest = std::min(n_fewest, *n);
    at = end + 1;
  }
  (*counts)->n_with.emplace(term, n_fewest);
  return n_fewest;
}

}  // namespace slipstream
