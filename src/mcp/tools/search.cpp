// search, find_symbol and find_related.
#include <algorithm>

#include "base/format.h"
#include "mcp/tools/tool.h"
#include "retrieval/search/symbol_search.h"

namespace slipstream {
namespace {

constexpr int kQueryLettersMax = 4000;
constexpr int kPathLettersMax = 4000;
constexpr int kNameLettersMax = 200;
constexpr int kPlacesMax = 50;
constexpr int kPlacesUsual = 8;
constexpr int kSymbolsShownMax = 100;
constexpr int kSymbolsUsual = 20;

constexpr std::string_view kProject =
    "Only this project: its whole path, or the last part of it. Default: all of them";
constexpr std::string_view kPrefix =
    "Only files whose path in the project begins so, such as src/net/";

Result<ToolAnswer> call_search(CorpusView& corpus, const Json& arguments) {
  Result<Corpus::Reader> reader = corpus.reader();
  if (!reader) return std::unexpected(reader.error());
  Result<std::vector<Project>> projects = named_projects(*reader, arguments);
  if (!projects) return std::unexpected(projects.error());
  const Freshness freshness = corpus.sync(*reader, *projects);
  const Result<SearchAnswer> answer =
      corpus.search(*reader, *projects,
                    {.query = text_of(arguments, "query"),
                     .path_prefix = text_of(arguments, "path"),
                     .n_results_max = integer_of(arguments, "max_results", kPlacesUsual)},
                    !arguments.contains("project"));
  if (!answer) return std::unexpected(answer.error());
  ToolAnswer shown = show_places(answer->found, "has", freshness);
  shown.json["is_nothing_relevant"] = answer->found.empty();
  if (answer->found.empty()) {
    shown.text =
        "Nothing in the index answers this. Try other words, or names as the code has them. " +
        shown.text;
  }
  if (answer->was_cut) shown.text += " The query is long: only its first words were looked for.";
  return shown;
}

Json shown_symbol(const FoundSymbol& symbol) {
  return {{"project", symbol.root},
          {"path", symbol.path},
          {"name", symbol.name},
          {"kind", symbol.kind},
          {"scope", symbol.scope},
          {"first_line", symbol.first_line},
          {"last_line", std::max(symbol.first_line, symbol.last_line)}};
}

Result<ToolAnswer> call_find_symbol(CorpusView& corpus, const Json& arguments) {
  Result<Corpus::Reader> reader = corpus.reader();
  if (!reader) return std::unexpected(reader.error());
  Result<std::vector<Project>> projects = named_projects(*reader, arguments);
  if (!projects) return std::unexpected(projects.error());
  const Freshness freshness = corpus.sync(*reader, *projects);
  const std::string name = text_of(arguments, "name");
  const auto found =
      find_symbols(reader->database(), *projects,
                   {.name = name,
                    .path_prefix = text_of(arguments, "path"),
                    .n_results_max = integer_of(arguments, "max_results", kSymbolsUsual)});
  if (!found) return std::unexpected(found.error());
  ToolAnswer answer;
  Json symbols = Json::array();
  for (const FoundSymbol& symbol : *found) {
    answer.text += format_text("{}/{}:{}-{} {} {}{}\n", symbol.root, symbol.path, symbol.first_line,
                               std::max(symbol.first_line, symbol.last_line), symbol.kind,
                               symbol.name, symbol.scope.empty() ? "" : " in " + symbol.scope);
    symbols.push_back(shown_symbol(symbol));
  }
  if (found->empty()) {
    answer.text =
        format_text("Nothing that the index knows is called {}. 'search' finds where it is used.\n",
                    rpc_quoted(name));
  }
  answer.text +=
      freshness.is_fresh ? "The index is fresh." : "The index is not fresh: " + freshness.note;
  answer.json = {{"symbols", std::move(symbols)},
                 {"index", {{"is_fresh", freshness.is_fresh}, {"note", freshness.note}}}};
  return answer;
}

Result<ToolAnswer> call_find_related(CorpusView& corpus, const Json& arguments) {
  Result<Corpus::Reader> reader = corpus.reader();
  if (!reader) return std::unexpected(reader.error());
  Result<NamedFile> file = named_file(*reader, arguments);
  if (!file) return std::unexpected(file.error());
  const Freshness freshness = corpus.sync(*reader, std::span(&file->project, 1));
  RelatedRequest request{.path = file->path,
                         .n_results_max = integer_of(arguments, "max_results", kPlacesUsual)};
  if (arguments.contains("line")) request.line = integer_of(arguments, "line", 1);
  const Result<std::vector<Found>> found = reader->related().find(file->project, request);
  if (!found) return std::unexpected(found.error());
  ToolAnswer answer = show_places(*found, "shares", freshness);
  if (found->empty())
    answer.text = "Nothing else shares rare names or words with it. " + answer.text;
  return answer;
}

}  // namespace

Tool search_tool() {
  return {
      .name = "search",
      .title = "Search the user's folders",
      .description =
          "Finds places in the user's source code and documents by words, names from code, or a "
          "question. Words between double quotes stand together. Gives path, lines, why, and the "
          "text. An answer without places means that nothing in the index is relevant.",
      .schema = object_schema(
          {{"query", text_schema("What to look for", kQueryLettersMax)},
           {"project", text_schema(kProject, kPathLettersMax)},
           {"path", text_schema(kPrefix, kPathLettersMax)},
           {"max_results", integer_schema("Places at most", 1, kPlacesMax, kPlacesUsual)}},
          Json::array({"query"})),
      .call = call_search};
}

Tool find_symbol_tool() {
  return {
      .name = "find_symbol",
      .title = "Find where a name is defined",
      .description =
          "Finds the definitions of a function, class, type, variable or heading by its name: as "
          "written, then in other case, then names that begin with it. 'Scope::name' and "
          "'scope.name' tell apart what is called the same.",
      .schema = object_schema(
          {{"name", text_schema("The name, with or without its scope", kNameLettersMax)},
           {"project", text_schema(kProject, kPathLettersMax)},
           {"path", text_schema(kPrefix, kPathLettersMax)},
           {"max_results",
            integer_schema("Definitions at most", 1, kSymbolsShownMax, kSymbolsUsual)}},
          Json::array({"name"})),
      .call = call_find_symbol};
}

Tool find_related_tool() {
  return {
      .name = "find_related",
      .title = "Find what is related to a place",
      .description =
          "Finds places in other files that share the rarest names and words with a given file, or "
          "with what stands at one of its lines: callers, tests, documentation, similar code.",
      .schema = object_schema(
          {{"path",
            text_schema("The file: relative to its project, or a whole path", kPathLettersMax)},
           {"line", integer_schema("A line of it. Default: the whole file", 1, 100'000'000)},
           {"project", text_schema(kProject, kPathLettersMax)},
           {"max_results", integer_schema("Places at most", 1, kPlacesMax, kPlacesUsual)}},
          Json::array({"path"})),
      .call = call_find_related};
}

}  // namespace slipstream
