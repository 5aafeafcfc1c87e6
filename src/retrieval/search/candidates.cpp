#include "retrieval/search/candidates.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "retrieval/store/fts_words.h"

namespace slipstream {
namespace {

// Chunks that are looked at for one query, about: 1 to 2 microseconds each.
constexpr std::int64_t kEntriesMax = 12'000;
constexpr std::size_t kTermsMin = 2;

// estimate(table, weights, how many times a term of the first column counts)
void estimate(const Fts5ExtensionApi* api, Fts5Context* context, sqlite3_context* result, int n,
              sqlite3_value** arguments) {
  if (n != 2) return sqlite3_result_error(result, "estimate() takes two arguments", -1);
  const auto* weights = static_cast<const char*>(sqlite3_value_blob(arguments[0]));
  const auto n_weights =
      static_cast<std::size_t>(sqlite3_value_bytes(arguments[0])) / sizeof(double);
  const double first_counts = sqlite3_value_double(arguments[1]);
  double score = 0;
  const int n_phrases = api->xPhraseCount(context);
  for (int i = 0; i < n_phrases && static_cast<std::size_t>(i) < n_weights; ++i) {
    Fts5PhraseIter at{};
    int column = 0;
    int offset = 0;
    double count = 0;
    const int status = api->xPhraseFirst(context, i, &at, &column, &offset);
    if (status != SQLITE_OK) return sqlite3_result_error_code(result, status);
    for (; column >= 0 && count < 16; api->xPhraseNext(context, &at, &column, &offset)) {
      count += column == 0 ? first_counts : 1;
    }
    double weight = 0;
    std::memcpy(&weight, weights + static_cast<std::size_t>(i) * sizeof(double), sizeof(double));
    score += weight * count / (count + kSaturation);
  }
  sqlite3_result_double(result, score);
}

// The rarest terms first, as many as may be looked at.
std::vector<const WeightedTerm*> useful(std::span<const WeightedTerm> terms) {
  std::vector<const WeightedTerm*> found;
  for (const WeightedTerm& term : terms) {
    if (term.n_with > 0) found.push_back(&term);
  }
  std::ranges::stable_sort(found, {}, &WeightedTerm::n_with);
  std::int64_t n_entries = 0;
  std::size_t n_used = 0;
  for (; n_used < found.size(); ++n_used) {
    n_entries += found[n_used]->n_with;
    if (n_used >= kTermsMin && n_entries > kEntriesMax) break;
  }
  found.resize(n_used);
  return found;
}

std::string quoted(const std::string& term) { return "\"" + term + "\""; }

}  // namespace

Result<void> add_estimate(Database& database) {
  const Result<fts5_api*> api = full_text_api(database);
  if (!api) return std::unexpected(api.error());
  if ((*api)->xCreateFunction(*api, "estimate", nullptr, estimate, nullptr) != SQLITE_OK) {
    return std::unexpected(database_error(database.handle()));
  }
  return {};
}

Result<std::vector<Candidate>> find_candidates(Database& database, const std::string& table,
                                               std::span<const WeightedTerm> terms,
                                               double first_column_counts, int n_max) {
  const std::vector<const WeightedTerm*> used = useful(terms);
  std::vector<Candidate> found;
  if (used.empty()) return found;
  std::string match;
  std::vector<double> weights;
  for (const WeightedTerm* term : used) {
    match += (match.empty() ? "" : " OR ") + quoted(term->text);
    weights.push_back(term->weight);
  }
  Result<Statement> select = database.prepare(
      format_text("SELECT rowid, estimate({0}, ?1, ?2) AS score FROM {0} WHERE {0} MATCH ?3 "
                  "ORDER BY score DESC LIMIT ?4",
                  table));
  if (!select) return std::unexpected(select.error());
  select->bind(std::as_bytes(std::span(weights)), first_column_counts, match, n_max);
  while (true) {
    const Result<bool> has_row = select->step();
    if (!has_row) return std::unexpected(has_row.error());
    if (!*has_row) return found;
    found.push_back({.id = select->integer(0), .score = select->number(1)});
  }
}

}  // namespace slipstream
