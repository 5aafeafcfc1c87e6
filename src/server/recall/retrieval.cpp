#include "server/recall/retrieval.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "server/recall/attached_places.h"
#include "server/recall/message_text.h"
#include "server/recall/place_writer.h"
#include "server/recall/recall_limits.h"

namespace slipstream {
namespace {

constexpr std::string_view kHead =
    "From the user's files, found for this message. Cite what you use by its number, as in [1].\n";
// Of the context: what may be put before a message if a chat does not say; and if it does.
constexpr int kUsualShare = 4;
constexpr int kShareMax = 2;

ApiError unavailable(const Error& error) {
  return {.status = 503, .message = format_text("The index cannot be searched: {}", error.message)};
}

}  // namespace

// What one request wants of the index of folders, with what it takes.
struct Retrieval::Folders {
  CorpusView view;
  Corpus::Reader reader;
  std::vector<Project> projects;
  bool are_all;

  // Texts of other projects, or of those that the client cannot see any more, are not put again.
  [[nodiscard]] std::string purpose() const {
    std::string text = "retrieval";
    for (const Project& project : projects) text += '\0' + project.root;
    return text;
  }

  [[nodiscard]] ApiResult<void> find(const std::string& query,
                                     const std::vector<RecallSource>& shown, PlaceWriter& writer) {
    (void)view.sync(reader, projects);
    Result<SearchAnswer> answer = view.search(reader, projects,
                                              {.query = query,
                                               .n_results_max = kRecallLimits.retrieved_max,
                                               .share_min = kRecallLimits.retrieved_share_min},
                                              are_all);
    // "???" has no words.
    if (!answer && answer.error().code == Code::kInvalidArgument) return {};
    if (!answer) return std::unexpected(unavailable(answer.error()));
    for (const Found& place : answer->found) {
      if (place.score < kRecallLimits.retrieved_score_share_min * answer->found.front().score)
        break;
      RecallSource source{.project = place.root,
                          .path = place.path,
                          .first_line = place.first_line,
                          .last_line = place.last_line};
      if (std::ranges::any_of(shown, [&](const auto& one) { return one.covers(source); })) continue;
      if (!writer.add(std::move(source), place.text)) break;
    }
    return {};
  }
};

// The same of the files of a chat.
struct Retrieval::Attached {
  std::string chat;
  AttachedFiles attached;
  std::vector<IndexedFile> files;

  [[nodiscard]] std::string purpose() const { return "attached" + ('\0' + chat); }
  // Texts of files that were removed or replaced are not put again.
  [[nodiscard]] bool has(const RecallSource& source) const {
    return std::ranges::any_of(
        files, [&](const IndexedFile& file) { return source_of(chat, file).covers(source); });
  }
};

struct Retrieval::Wish {
  const Vocabulary& vocabulary;
  std::optional<Folders> folders;
  std::optional<Attached> attached;
  std::optional<int> n_tokens_max;  // of all together, as the request has it
  int n_usual_max;                  // of the context
};

ApiResult<std::optional<Retrieval::Attached>> Retrieval::read_attached(
    const RetrievalDemand& demand, const Client& client) const {
  constexpr const char* kField = "retrieval.chat";
  if (demand.chat.empty()) return std::nullopt;
  if (options_.attachments == nullptr) {
    return refuse(kField,
                  "'retrieval.chat': chats have no files here: start the server with "
                  "--attachments");
  }
  Result<AttachedFiles> attached =
      options_.attachments->files_of({.salt = client.salt, .id = demand.chat});
  if (!attached && attached.error().code == Code::kNotFound) {
    return refuse(kField,
                  "'retrieval.chat': no files are attached to this chat; files of chats "
                  "that were not used for long are removed: attach them again");
  }
  if (!attached && attached.error().code == Code::kInvalidArgument) {
    return refuse(kField, format_text("'retrieval.chat': {}", attached.error().message));
  }
  if (!attached) return std::unexpected(unavailable(attached.error()));
  Result<std::vector<IndexedFile>> files = attached->list();
  if (!files) return std::unexpected(unavailable(files.error()));
  return Attached{
      .chat = demand.chat, .attached = std::move(*attached), .files = std::move(*files)};
}

ApiResult<std::optional<Retrieval::Folders>> Retrieval::read_folders(
    const std::optional<RetrievalDemand>& demand, const Client& client) const {
  const bool is_asked_for = demand && (demand->project || demand->chat.empty());
  if (demand && !demand->wants_projects) return std::nullopt;
  if (!is_asked_for && !options_.usual_project) return std::nullopt;
  if (options_.corpus == nullptr) {
    return refuse("retrieval",
                  "'retrieval': the server has no index: start it with --retrieve or --mcp");
  }
  CorpusView view(*options_.corpus, client.rights);
  Result<Corpus::Reader> reader = view.reader();
  if (!reader) return std::unexpected(unavailable(reader.error()));
  Result<std::vector<Project>> projects = reader->projects();
  if (!projects) return std::unexpected(unavailable(projects.error()));
  std::string named = is_asked_for ? demand->project.value_or("") : "";
  if (named.empty()) named = options_.usual_project.value_or("");
  if (!named.empty()) {
    Result<Project> project = choose_project(*projects, named);
    if (!project) {
      if (!is_asked_for) return std::nullopt;  // it belongs to other clients
      return refuse("retrieval.project",
                    format_text("'retrieval.project': {}", project.error().message));
    }
    *projects = {std::move(*project)};
  }
  return Folders{.view = view,
                 .reader = std::move(*reader),
                 .projects = std::move(*projects),
                 .are_all = named.empty()};
}

ApiResult<Retrieval::Wish> Retrieval::read_wish(const ChatRequest& request,
                                                const Vocabulary& vocabulary, int n_context,
                                                const Client& client) const {
  Wish wish{.vocabulary = vocabulary,
            .folders = {},
            .attached = {},
            .n_tokens_max = {},
            .n_usual_max = n_context / kUsualShare};
  const std::optional<RetrievalDemand>& demand = request.retrieval;
  if (demand && !demand->is_on) return wish;
  if (demand) {
    wish.n_tokens_max = demand->n_tokens_max;
    if (const int n_max = n_context / kShareMax; wish.n_tokens_max.value_or(0) > n_max) {
      return refuse(
          "retrieval.budget",
          format_text("'retrieval.budget' must be at most {}, half of the context", n_max));
    }
    ApiResult<std::optional<Attached>> attached = read_attached(*demand, client);
    if (!attached) return std::unexpected(attached.error());
    if (*attached) wish.attached.emplace(std::move(**attached));
  }
  ApiResult<std::optional<Folders>> folders = read_folders(demand, client);
  if (!folders) return std::unexpected(folders.error());
  if (*folders) wish.folders.emplace(std::move(**folders));
  return wish;
}

struct Retrieval::Question {
  const std::string& text;
  std::size_t n_shown;                     // places before it
  const std::vector<RecallSource>& shown;  // those that are in the prompt
  const MessageKey& of_attached;
  const MessageKey& of_folders;
};

ApiResult<void> Retrieval::find(Wish& wish, const Question& question) {
  const int n_found_max = std::min(options_.n_tokens_max, wish.n_usual_max);
  PlaceWriter of_chat(wish.vocabulary, question.n_shown,
                      wish.n_tokens_max.value_or(wish.n_usual_max));
  if (wish.attached) {
    Attached& attached = *wish.attached;
    const Result<void> found =
        find_attached(attached.attached,
                      {.chat = attached.chat,
                       .text = question.text,
                       .files = attached.files,
                       .shown = question.shown,
                       .n_found_tokens_max = wish.n_tokens_max.value_or(n_found_max)},
                      of_chat);
    if (!found) return std::unexpected(unavailable(found.error()));
  }
  if (wish.folders) {
    const int n_max = wish.n_tokens_max ? *wish.n_tokens_max - of_chat.n_used() : n_found_max;
    PlaceWriter writer(wish.vocabulary, question.n_shown + of_chat.places().size(), n_max);
    if (auto found = wish.folders->find(question.text, question.shown, writer); !found)
      return found;
    added_.put(question.of_folders, std::move(writer.places()));
  }
  if (wish.attached) added_.put(question.of_attached, std::move(of_chat.places()));
  return {};
}

ApiResult<Retrieved> Retrieval::add_to(ChatRequest& request, const Vocabulary& vocabulary,
                                       int n_context, const Client& client, std::size_t n_gone) {
  ApiResult<Wish> wish = read_wish(request, vocabulary, n_context, client);
  if (!wish) return std::unexpected(wish.error());
  Retrieved result;
  if (!wish->folders && !wish->attached) return result;
  ShownSources& shown = result.sources;
  std::vector<RecallSource> in_prompt;
  result.n_added.resize(request.messages.size());
  MessageKeys folder_keys(client.salt, wish->folders ? wish->folders->purpose() : "");
  MessageKeys attached_keys(client.salt, wish->attached ? wish->attached->purpose() : "");
  for (std::size_t i = 0; i < request.messages.size(); ++i) {
    Json& message = request.messages[i];
    if (!is_said_by(message, "user")) continue;
    const std::string text = text_of_message(message);
    const MessageKey of_folders = folder_keys.next(text);
    const MessageKey of_attached = attached_keys.next(text);
    // After the result of a tool its question is not asked again.
    const bool is_asked = i + (request.continues_last ? 2 : 1) == request.messages.size();
    if (is_asked && wish->n_tokens_max.value_or(1) > 0) {
      const auto found = find(*wish, {.text = text,
                                      .n_shown = shown.all.size(),
                                      .shown = in_prompt,
                                      .of_attached = of_attached,
                                      .of_folders = of_folders});
      if (!found) return std::unexpected(found.error());
    }
    shown.n_before = shown.all.size();
    std::string added;
    const auto show = [&](const AddedPlace& place) {
      added += numbered(shown.all.size() + 1, place);
      shown.all.push_back(place.source);
      if (i >= n_gone) in_prompt.push_back(place.source);
    };
    if (const auto places = wish->attached ? added_.find(of_attached) : nullptr) {
      for (const AddedPlace& place : *places) {
        if (wish->attached && wish->attached->has(place.source)) show(place);
      }
    }
    if (const auto places = wish->folders ? added_.find(of_folders) : nullptr) {
      std::ranges::for_each(*places, show);
    }
    if (!added.empty()) result.n_added[i] = put_before_content(message, std::string(kHead) + added);
  }
  return result;
}

}  // namespace slipstream
