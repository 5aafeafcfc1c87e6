#include "server/recall/retrieval.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "server/recall/message_text.h"

namespace slipstream {
namespace {

constexpr int kPlacesMax = 16;
// Messages have many words that no file has, and a model leaves what is of no use to it.
constexpr double kShareMin = 0.2;
// Beside the best place others are worth their tokens only if they come near it.
constexpr double kScoreShareMin = 0.4;
constexpr std::string_view kHead =
    "From the user's files, found for this message. Cite what you use by its number, as in [1].\n";

bool is_same(const RecallSource& source, const Found& place) {
  return source.path == place.path && source.project == place.root &&
         source.first_line <= place.first_line && source.last_line >= place.last_line;
}

// The lines of a text that have at most so many tokens.
std::string first_lines(const Vocabulary& vocabulary, const std::string& text, int n_tokens_max) {
  std::string kept = text;
  while (!kept.empty()) {
    const Result<std::vector<Token>> tokens = vocabulary.tokenize(kept, false, false);
    if (!tokens) return {};
    if (std::cmp_less_equal(tokens->size(), n_tokens_max)) return kept;
    // Near the end first: the text has about as many tokens in each of its bytes.
    const std::size_t n = kept.size() * static_cast<std::size_t>(n_tokens_max) / tokens->size();
    const std::size_t end = n == 0 ? std::string::npos : kept.rfind('\n', n - 1);
    kept.resize(end == std::string::npos ? 0 : end + 1);
  }
  return {};
}

std::string numbered(std::size_t number, const Found& place, int last_line,
                     const std::string& text) {
  return format_text("\n[{}] {}/{}:{}-{}\n{}{}", number, place.root, place.path, place.first_line,
                     last_line, text, text.ends_with('\n') ? "" : "\n");
}

ApiError unavailable(const Error& error) {
  return {.status = 503, .message = format_text("The index cannot be searched: {}", error.message)};
}

}  // namespace

// What one request wants, with what it takes.
struct Retrieval::Wish {
  const Vocabulary& vocabulary;
  CorpusView view;
  Corpus::Reader reader;
  std::vector<Project> projects;
  bool are_all;
  int n_tokens_max;
};

ApiResult<AddedText> Retrieval::find(Wish& wish, const std::string& query,
                                     const std::vector<RecallSource>& shown) {
  (void)wish.view.sync(wish.reader, wish.projects);
  const Result<SearchAnswer> answer = wish.view.search(
      wish.reader, wish.projects,
      {.query = query, .n_results_max = kPlacesMax, .share_min = kShareMin}, wish.are_all);
  // "???" has no words.
  if (!answer && answer.error().code == Code::kInvalidArgument) return AddedText{};
  if (!answer) return std::unexpected(unavailable(answer.error()));
  AddedText added;
  int n_left = wish.n_tokens_max;
  for (const Found& place : answer->found) {
    if (place.score < kScoreShareMin * answer->found.front().score) break;
    if (std::ranges::any_of(shown, [&](const auto& source) { return is_same(source, place); })) {
      continue;
    }
    constexpr int kTokensOfHead = 40;  // of the numbered line, about
    const std::string text = n_left > kTokensOfHead
                                 ? first_lines(wish.vocabulary, place.text, n_left - kTokensOfHead)
                                 : std::string();
    if (text.empty()) break;
    const bool is_whole = text.size() == place.text.size();
    const int last_line =
        is_whole ? place.last_line
                 : place.first_line + static_cast<int>(std::ranges::count(text, '\n')) - 1;
    const std::string shown_text =
        numbered(shown.size() + added.sources.size() + 1, place, last_line, text);
    const Result<std::vector<Token>> tokens = wish.vocabulary.tokenize(shown_text, false, false);
    n_left -= tokens ? static_cast<int>(tokens->size()) : n_left;
    if (n_left < 0) break;
    added.text += shown_text;
    added.sources.push_back({.project = place.root,
                             .path = place.path,
                             .first_line = place.first_line,
                             .last_line = last_line});
    if (!is_whole) break;
  }
  if (!added.text.empty()) added.text.insert(0, kHead);
  return added;
}

ApiResult<std::optional<Retrieval::Wish>> Retrieval::read_wish(const ChatRequest& request,
                                                               const Vocabulary& vocabulary,
                                                               int n_context,
                                                               const Client& client) const {
  if (!request.retrieval && !options_.usual_project) return std::nullopt;
  RetrievalDemand demand = request.retrieval.value_or(RetrievalDemand{});
  if (!demand.is_on) return std::nullopt;
  const int n_tokens_limit = n_context / 2;
  if (demand.n_tokens_max && *demand.n_tokens_max > n_tokens_limit) {
    return refuse(
        "retrieval.budget",
        format_text("'retrieval.budget' must be at most {}, half of the context", n_tokens_limit));
  }
  CorpusView view(*options_.corpus, client.rights);
  Result<Corpus::Reader> reader = view.reader();
  if (!reader) return std::unexpected(unavailable(reader.error()));
  Result<std::vector<Project>> projects = reader->projects();
  if (!projects) return std::unexpected(unavailable(projects.error()));
  if (demand.project.empty()) demand.project = options_.usual_project.value_or("");
  if (!demand.project.empty()) {
    Result<Project> project = choose_project(*projects, demand.project);
    if (!project) {
      if (!request.retrieval) return std::nullopt;  // it belongs to other clients
      return refuse("retrieval.project",
                    format_text("'retrieval.project': {}", project.error().message));
    }
    *projects = {std::move(*project)};
  }
  return Wish{
      .vocabulary = vocabulary,
      .view = view,
      .reader = std::move(*reader),
      .projects = std::move(*projects),
      .are_all = demand.project.empty(),
      .n_tokens_max = demand.n_tokens_max.value_or(std::min(options_.n_tokens_max, n_context / 4))};
}

ApiResult<Retrieved> Retrieval::add_to(ChatRequest& request, const Vocabulary& vocabulary,
                                       int n_context, const Client& client) {
  ApiResult<std::optional<Wish>> wish = read_wish(request, vocabulary, n_context, client);
  if (!wish) return std::unexpected(wish.error());
  Retrieved result;
  if (!*wish) return result;
  ShownSources& shown = result.sources;
  result.n_added.resize(request.messages.size());
  // Texts of other projects, or of those that the client cannot see any more, are not put again.
  std::string purpose = "retrieval";
  for (const Project& project : (*wish)->projects) purpose += '\0' + project.root;
  MessageKeys keys(client.salt, purpose);
  for (std::size_t i = 0; i < request.messages.size(); ++i) {
    Json& message = request.messages[i];
    if (!is_said_by(message, "user")) continue;
    const std::string text = text_of_message(message);
    const MessageKey key = keys.next(text);
    // After the result of a tool its question is not asked again.
    const bool is_asked = i + (request.continues_last ? 2 : 1) == request.messages.size();
    if (is_asked && (*wish)->n_tokens_max > 0) {
      ApiResult<AddedText> found = find(**wish, text, shown.all);
      if (!found) return std::unexpected(found.error());
      added_.put(key, std::move(*found));
    }
    shown.n_before = shown.all.size();
    const std::shared_ptr<const AddedText> added = added_.find(key);
    if (!added || added->text.empty()) continue;
    result.n_added[i] = put_before_content(message, added->text);
    shown.all.append_range(added->sources);
  }
  return result;
}

}  // namespace slipstream
