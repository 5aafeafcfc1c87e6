#include "retrieval/search/related.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "retrieval/retrieval_limits.h"
#include "retrieval/search/ranker.h"

namespace slipstream {
namespace {

constexpr std::size_t kOriginBytesMax = std::size_t{32} << 10;
// How many terms are counted, and how many of them are looked for. Counting a frequent one takes
// long, and the frequent ones are short words.
constexpr std::size_t kTermsCounted = 64;
constexpr std::size_t kTermsUsed = 16;
constexpr int kRelatedMax = 80;  // candidates
// What has less in common has it by chance: so many terms, and so much of the weight of all.
constexpr std::size_t kSharedMin = 2;
constexpr double kSharedWeightMin = 0.1;
constexpr int kRelatedOfFileMax = 2;

struct SeenTerm {
  bool is_name = false;  // the whole of an identifier, or part of a name that is defined there
  int count = 0;
};

bool is_name_before(const std::pair<std::string, SeenTerm>& a,
                    const std::pair<std::string, SeenTerm>& b) {
  if (a.second.is_name != b.second.is_name) return a.second.is_name;
  return a.first.size() > b.first.size();
}

}  // namespace

Result<RelatedFinder::Origin> RelatedFinder::read_origin(const Project& project,
                                                         const RelatedRequest& request) {
  Result<Statement> select = database_.prepare(
      "SELECT chunk.content, chunk.names, chunk.text FROM file "
      "JOIN chunk ON chunk.content = file.content "
      "WHERE file.project = ?1 AND file.path = ?2 AND chunk.last_line >= ?3 "
      "ORDER BY chunk.first_line");
  if (!select) return std::unexpected(select.error());
  select->bind(project.id, request.path, request.line.value_or(0));
  Origin origin;
  while (origin.text.size() < kOriginBytesMax) {
    const Result<bool> has_row = select->step();
    if (!has_row) return std::unexpected(has_row.error());
    if (!*has_row) break;
    Result<std::string> text = chunks_.unpack(select->bytes(2));
    if (!text) return std::unexpected(text.error());
    origin.content = select->integer(0);
    origin.names += ' ';
    origin.names += select->text(1);
    origin.text += text->substr(0, kOriginBytesMax);
    origin.text += '\n';
    if (request.line) break;
  }
  if (origin.content == 0) {
    return fail(Code::kNotFound,
                request.line
                    ? format_text("{} has no text at or after line {} in the index of {}",
                                  request.path, *request.line, project.root)
                    : format_text("the index of {} has no text of {}", project.root, request.path));
  }
  return origin;
}

Result<std::vector<WeightedTerm>> RelatedFinder::telling_terms(ProjectId project,
                                                               const Origin& origin) {
  std::map<std::string, SeenTerm> seen;
  const auto see = [&](const Term& term, bool is_name) {
    SeenTerm& entry = seen[std::string(term.text)];
    entry.is_name |= is_name;
    ++entry.count;
    return true;
  };
  words_.cut(origin.names, [&](const Term& term) { return see(term, true); });
  words_.cut(origin.text, [&](const Term& term) { return see(term, term.is_whole); });
  std::vector<std::pair<std::string, SeenTerm>> ordered(seen.begin(), seen.end());
  std::ranges::stable_sort(ordered, is_name_before);
  if (ordered.size() > kTermsCounted) ordered.resize(kTermsCounted);

  const Result<std::int64_t> n_all = counts_.n_chunks(project);
  if (!n_all) return std::unexpected(n_all.error());
  std::vector<WeightedTerm> terms;
  for (const auto& [text, entry] : ordered) {
    const Result<std::int64_t> n_with = counts_.n_with(project, text);
    if (!n_with) return std::unexpected(n_with.error());
    if (*n_with < 2) continue;  // it leads nowhere else
    const double rarity = std::log(1 + static_cast<double>(*n_all) / static_cast<double>(*n_with));
    const double repeats = 1 + std::log(static_cast<double>(entry.count));
    terms.push_back({.text = text, .n_with = *n_with, .weight = rarity * repeats});
  }
  std::ranges::stable_sort(terms, std::greater(), &WeightedTerm::weight);
  if (terms.size() > kTermsUsed) terms.resize(kTermsUsed);
  return terms;
}

Result<std::vector<Found>> RelatedFinder::find(const Project& project,
                                               const RelatedRequest& request) {
  const Result<Origin> origin = read_origin(project, request);
  if (!origin) return std::unexpected(origin.error());
  const Result<std::vector<WeightedTerm>> terms = telling_terms(project.id, *origin);
  if (!terms) return std::unexpected(terms.error());
  const Result<std::vector<Candidate>> candidates =
      find_candidates(database_, chunk_words(project.id), *terms, kNameCounts, kRelatedMax);
  if (!candidates) return std::unexpected(candidates.error());

  std::vector<Found> found;
  for (const Candidate& candidate : *candidates) {
    Result<std::optional<StoredChunk>> read = chunks_.read(project.id, candidate.id);
    if (!read) return std::unexpected(read.error());
    if (!*read) continue;
    StoredChunk& chunk = **read;
    if (chunk.content == origin->content) continue;
    const Rank rank = slipstream::rank(
        {.path = {}, .names = chunk.names, .text = chunk.text, .defines_name = false}, *terms,
        words_);
    if (rank.terms.size() < kSharedMin || rank.share < kSharedWeightMin) continue;
    found.push_back({.root = project.root,
                     .path = std::move(chunk.path),
                     .first_line = chunk.first_line,
                     .last_line = chunk.last_line,
                     .text = std::move(chunk.text),
                     .names = std::move(chunk.names),
                     .score = rank.score,
                     .terms = {},
                     .defines_name = false,
                     .is_changed = false,
                     .is_converted = chunk.is_converted});
    for (const std::size_t i : rank.terms) found.back().terms.push_back((*terms)[i].text);
    found.back().is_changed = has_changed(project.root, found.back().path, chunk.stamp);
  }
  std::ranges::stable_sort(found, std::greater(), &Found::score);
  std::map<std::string, int> n_of_file;
  std::erase_if(found,
                [&](const Found& place) { return n_of_file[place.path]++ >= kRelatedOfFileMax; });
  const auto n_max = static_cast<std::size_t>(
      std::clamp(request.n_results_max, 0, static_cast<int>(kRetrievalLimits.results_max)));
  if (found.size() > n_max) found.resize(n_max);
  return found;
}

}  // namespace slipstream
