#include "retrieval/search/searcher.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>

#include "base/format.h"
#include "retrieval/files/file_list.h"
#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

constexpr int kCandidatesMax = 60;
constexpr int kFilesMax = 20;
constexpr double kPartCounts = 0.5;  // of an identifier
constexpr int kDefinitionsMax = 24;  // of all names of a query together
constexpr std::size_t kNearMax = 100;
// Of a project of which only a part is asked for: most of the nearest lie elsewhere.
constexpr std::size_t kNearBelowPathMax = 2000;
// So many of the best are read by the reranker.
constexpr std::size_t kRerankedMax = 20;
constexpr std::size_t kChunkBytesMax = std::size_t{8} << 20;
// Of a long question a smaller share of its weight is enough, if it is of several terms, or of two
// that stand side by side, as the words of a name do.
constexpr double kShareOfPairMin = 0.25;
constexpr double kShareOfManyMin = 0.15;
constexpr std::size_t kManyTerms = 4;

// In a small index every word is frequent or absent, which tells nothing: it counts as part of a
// larger one.
double inverse_frequency(std::int64_t n_all, std::int64_t n_with) {
  constexpr double kChunksMin = 1000;
  const double all = std::max(kChunksMin, static_cast<double>(n_all));
  const auto with = static_cast<double>(n_with);
  return std::log(1 + (all - with + 0.5) / (with + 0.5));
}

}  // namespace

struct Searcher::Place {
  ChunkId chunk = 0;
  bool defines_name = false;
  double estimate = 0;
  std::string path = {};
  int first_line = 0;
  int last_line = 0;
  std::string names = {};
  std::string text = {};
  bool is_converted = false;
  FileStamp stamp = {};
  Rank rank = {};
  std::optional<float> nearness = {};
  double score = 0;
  const Project* project = nullptr;
};

bool Searcher::answers(const Place& place, double share_min) {
  return is_near(place.nearness) || place.defines_name || place.rank.share >= share_min ||
         (place.rank.share >= kShareOfPairMin && place.rank.has_pair) ||
         (place.rank.share >= kShareOfManyMin && place.rank.terms.size() >= kManyTerms);
}

Result<std::unique_ptr<Searcher>> Searcher::open(const std::string& index_path,
                                                 const SearchModels& models) {
  Result<Database> database = open_index_to_read(index_path);
  if (!database) return std::unexpected(database.error());
  if (Result<void> added = add_estimate(*database); !added) return std::unexpected(added.error());
  return std::unique_ptr<Searcher>(new Searcher(std::move(*database), models));
}

Result<Statement*> Searcher::prepared(const std::string& sql) {
  const auto known = std::ranges::find(statements_, sql, &std::pair<std::string, Statement>::first);
  if (known != statements_.end()) return &known->second;
  Result<Statement> statement = database_.prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  return &statements_.emplace_back(sql, std::move(*statement)).second;
}

Result<std::vector<WeightedTerm>> Searcher::weigh(ProjectId project, const Query& query) {
  const Result<std::int64_t> n_all = counts_.n_chunks(project);
  if (!n_all) return std::unexpected(n_all.error());
  std::vector<WeightedTerm> terms;
  for (const QueryTerm& term : query.terms) {
    const Result<std::int64_t> n_with = counts_.n_with(project, term.text);
    if (!n_with) return std::unexpected(n_with.error());
    // The parts of a name say less than the name, which stands beside them.
    const double share = term.is_part ? kPartCounts : 1;
    terms.push_back({.text = term.text,
                     .n_with = *n_with,
                     .weight = share * inverse_frequency(*n_all, *n_with)});
  }
  return terms;
}

// Chunks that define what the query names.
Result<void> Searcher::add_definitions(ProjectId project, const Query& query,
                                       std::vector<Place>& places) {
  Result<Statement*> select = prepared(
      "SELECT chunk.id FROM symbol JOIN chunk ON chunk.content = symbol.content "
      "AND symbol.first_line BETWEEN chunk.first_line AND chunk.last_line "
      "WHERE symbol.project = ? AND symbol.name = ? COLLATE NOCASE LIMIT ?");
  if (!select) return std::unexpected(select.error());
  int n_left = kDefinitionsMax;
  for (const std::string& name : query.names) {
    (*select)->bind(project, name, n_left);
    while (n_left > 0) {
      const Result<bool> has_row = (*select)->step();
      if (!has_row) return std::unexpected(has_row.error());
      if (!*has_row) break;
      places.push_back({.chunk = (*select)->integer(0), .defines_name = true});
      --n_left;
    }
    (*select)->reset();
  }
  return {};
}

// The first chunks of files whose paths have the query's terms.
Result<void> Searcher::add_files(ProjectId project, std::span<const WeightedTerm> terms,
                                 std::vector<Place>& places) {
  std::vector<WeightedTerm> in_paths(terms.begin(), terms.end());
  for (WeightedTerm& term : in_paths) term.n_with = 1;  // not counted: paths are few
  const Result<std::vector<Candidate>> files =
      find_candidates(database_, path_words(project), in_paths, 1, kFilesMax);
  if (!files) return std::unexpected(files.error());
  Result<Statement*> select = prepared(
      "SELECT min(chunk.id) FROM file JOIN chunk ON chunk.content = file.content WHERE file.id = "
      "?");
  if (!select) return std::unexpected(select.error());
  for (const Candidate& file : *files) {
    (*select)->bind(file.id);
    const Result<bool> has_row = (*select)->step();
    if (!has_row) return std::unexpected(has_row.error());
    if (*has_row && !(*select)->is_null(0)) places.push_back({.chunk = (*select)->integer(0)});
    (*select)->reset();
  }
  return {};
}

Result<std::string> Searcher::unpack(std::span<const std::byte> frame) {
  const Result<std::uint64_t> n_bytes = FrameDecoder::content_bytes(frame);
  if (!n_bytes) return std::unexpected(n_bytes.error());
  if (*n_bytes > kChunkBytesMax)
    return fail(Code::kCorrupt, "the index has a chunk that is too long");
  std::string text(*n_bytes, '\0');
  if (Result<void> done = decoder_.decode(frame, std::as_writable_bytes(std::span(text))); !done) {
    return std::unexpected(done.error());
  }
  return text;
}

// Fills in what the index knows of a place. False: no file has it any more, or none that is asked for.
Result<bool> Searcher::read_place(const Project& project, Place& place,
                                  const std::string& path_prefix) {
  Result<Statement*> select = prepared(
      "SELECT file.path, chunk.first_line, chunk.last_line, chunk.names, chunk.text, "
      "content.is_converted, file.n_bytes, file.modified_ns, file.changed_ns, file.inode "
      "FROM chunk JOIN content ON content.id = chunk.content JOIN file ON file.content = "
      "content.id "
      "WHERE chunk.id = ?1 AND content.project = ?2 AND substr(file.path, 1, length(?3)) = ?3 "
      "ORDER BY length(file.path), file.path LIMIT 1");
  if (!select) return std::unexpected(select.error());
  Statement& row = **select;
  row.bind(place.chunk, project.id, path_prefix);
  const Result<bool> has_row = row.step();
  if (!has_row) return std::unexpected(has_row.error());
  if (!*has_row) return false;
  place.path = row.text(0);
  place.first_line = static_cast<int>(row.integer(1));
  place.last_line = static_cast<int>(row.integer(2));
  place.names = row.text(3);
  Result<std::string> text = unpack(row.bytes(4));
  place.is_converted = row.integer(5) != 0;
  place.stamp = {.n_bytes = row.integer(6),
                 .modified_ns = row.integer(7),
                 .changed_ns = row.integer(8),
                 .inode = row.integer(9)};
  row.reset();
  if (!text) return std::unexpected(text.error());
  place.text = std::move(*text);
  place.project = &project;
  return true;
}

Result<std::vector<Searcher::Place>> Searcher::find_places(const Project& project,
                                                           const Query& query,
                                                           const SearchRequest& request,
                                                           const VectorTable* near) {
  const Result<std::vector<WeightedTerm>> terms = weigh(project.id, query);
  if (!terms) return std::unexpected(terms.error());
  std::vector<Place> places;
  if (Result<void> added = add_definitions(project.id, query, places); !added) {
    return std::unexpected(added.error());
  }
  const Result<std::vector<Candidate>> candidates =
      find_candidates(database_, chunk_words(project.id), *terms, kNameCounts, kCandidatesMax);
  if (!candidates) return std::unexpected(candidates.error());
  for (const Candidate& candidate : *candidates) {
    places.push_back({.chunk = candidate.id, .estimate = candidate.score});
  }
  if (Result<void> added = add_files(project.id, *terms, places); !added) {
    return std::unexpected(added.error());
  }
  if (near != nullptr) {
    add_near(*near, request.path_prefix.empty() ? kNearMax : kNearBelowPathMax, places);
  }
  std::unordered_set<ChunkId> seen;
  std::vector<Place> read;
  for (Place& place : places) {
    if (!seen.insert(place.chunk).second) continue;
    const Result<bool> is_there = read_place(project, place, request.path_prefix);
    if (!is_there) return std::unexpected(is_there.error());
    if (!*is_there) continue;
    place.rank = rank({.path = place.path,
                       .names = place.names,
                       .text = place.text,
                       .defines_name = place.defines_name},
                      *terms, words_);
    if (near != nullptr) place.nearness = near->cosine(dense_.query(), place.chunk);
    read.push_back(std::move(place));
  }
  return read;
}

void Searcher::add_near(const VectorTable& table, std::size_t n_max, std::vector<Place>& places) {
  for (const NearChunk& chunk : table.nearest(dense_.query(), n_max)) {
    places.push_back({.chunk = chunk.chunk});
  }
}

void Searcher::order(std::vector<Place>& places, double weight_of_meaning) {
  if (weight_of_meaning > 0) {
    std::vector<PlaceScores> scores;
    for (const Place& place : places) {
      scores.push_back({.lexical = place.rank.score, .cosine = place.nearness});
    }
    const std::vector<double> fused = fuse(scores, weight_of_meaning);
    for (std::size_t i = 0; i < places.size(); ++i) places[i].score = fused[i];
  } else {
    for (Place& place : places) place.score = place.rank.score;
  }
  std::ranges::stable_sort(places, std::greater(), &Place::score);
}

void Searcher::rerank(const std::string& query, SearchAnswer& answer) {
  const std::span found =
      std::span(answer.found).first(std::min(answer.found.size(), kRerankedMax));
  std::vector<std::string> texts;
  for (const Found& place : found) texts.push_back(text_to_embed(place.names, place.text));
  const Result<std::vector<float>> ranks = models_.ranker->rank(query, texts);
  if (!ranks || ranks->size() != found.size()) {
    answer.problem = "the reranker: " + (ranks ? "it lost a text" : ranks.error().message);
    return;
  }
  for (std::size_t i = 0; i < found.size(); ++i) found[i].score = static_cast<double>((*ranks)[i]);
  std::ranges::stable_sort(found, std::greater(), &Found::score);
}

Found Searcher::found_of(const Place& place, const Query& query) {
  Found found{.root = place.project->root,
              .path = place.path,
              .first_line = place.first_line,
              .last_line = place.last_line,
              .text = place.text,
              .names = place.names,
              .score = place.score,
              .words = place.rank.score,
              .nearness = place.nearness,
              .terms = {},
              .defines_name = place.defines_name,
              .is_changed = false,
              .is_converted = place.is_converted};
  for (const std::size_t i : place.rank.terms) found.terms.push_back(query.terms[i].written);
  struct stat status{};
  const std::string path = found.root + "/" + found.path;
  const FileStamp now =
      ::lstat(path.c_str(), &status) == 0 ? stamp_of(status) : FileStamp{.n_bytes = -1};
  // What was read just after it had changed has no time of its own (file_work.cpp).
  found.is_changed =
      now.n_bytes != place.stamp.n_bytes || now.modified_ns != place.stamp.modified_ns;
  return found;
}

Result<double> Searcher::weigh_meaning(const SearchRequest& request, const Query& query,
                                       SearchAnswer& answer) {
  if (!request.meaning && models_.embedder == nullptr) return 0;
  const double weight = request.meaning.value_or(weight_of_meaning(kind_of(query, request.query)));
  if (weight <= 0 || dense_.ask(database_, request.query)) return weight;
  if (request.meaning) return fail(Code::kUnsupported, dense_.why_not());
  answer.problem = dense_.why_not();
  return 0;
}

Result<SearchAnswer> Searcher::search(const SearchRequest& request) {
  const Query query = read_query(request.query, words_);
  if (query.terms.empty()) {
    return fail(Code::kInvalidArgument, "the query has no words that can be looked for");
  }
  Result<std::vector<Project>> projects = list_projects(database_);
  if (!projects) return std::unexpected(projects.error());
  if (request.project) {
    std::erase_if(*projects,
                  [&](const Project& project) { return project.id != *request.project; });
    if (projects->empty()) return fail(Code::kNotFound, "the project is not in the index");
  }
  SearchAnswer answer{.found = {}, .is_nothing_relevant = false, .was_cut = query.was_cut};
  const Result<double> weight = weigh_meaning(request, query, answer);
  if (!weight) return std::unexpected(weight.error());
  std::vector<Place> places;
  for (const Project& project : *projects) {
    std::shared_ptr<const VectorTable> near;
    if (*weight > 0) near = dense_.table(database_, project.id);
    if (*weight > 0 && near == nullptr) answer.problem = dense_.why_not();
    Result<std::vector<Place>> found = find_places(project, query, request, near.get());
    if (!found) return std::unexpected(found.error());
    std::ranges::move(*found, std::back_inserter(places));
  }
  order(places, *weight);

  if (std::ranges::none_of(
          places, [&request](const Place& place) { return answers(place, request.share_min); })) {
    answer.is_nothing_relevant = true;
    return answer;
  }
  const auto n_wanted = static_cast<std::size_t>(
      std::clamp(request.n_results_max, 0, static_cast<int>(kRetrievalLimits.results_max)));
  const std::size_t n_found =
      models_.ranker == nullptr ? n_wanted : std::max(n_wanted, kRerankedMax);
  std::map<std::pair<const Project*, std::string>, int> n_of_file;
  for (const Place& place : places) {
    if (answer.found.size() >= n_found) break;
    if (place.score <= 0 || n_of_file[{place.project, place.path}]++ >= request.n_of_file_max) {
      continue;
    }
    answer.found.push_back(found_of(place, query));
  }
  if (models_.ranker != nullptr) rerank(request.query, answer);
  if (answer.found.size() > n_wanted) answer.found.resize(n_wanted);
  return answer;
}

}  // namespace slipstream
