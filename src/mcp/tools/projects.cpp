// list_projects, add_project, index_status and wait_until_fresh.
#include "base/format.h"
#include "base/format_bytes.h"
#include "mcp/mcp_limits.h"
#include "mcp/tools/tool.h"

namespace slipstream {
namespace {

constexpr int kFolderLettersMax = 4000;
constexpr int kWaitSecondsUsual = 20;

std::string_view state_name(const Project& project) {
  if (!project.problem.empty()) return "problem";
  if (project.n_all > 0) return "being read";
  return project.is_complete ? "complete" : "not read yet";
}

Json project_json(const Project& project) {
  Json json = {{"project", project.root}, {"state", state_name(project)}};
  if (project.n_all > 0) json["percent_done"] = 100 * project.n_done / project.n_all;
  if (!project.problem.empty()) json["problem"] = project.problem;
  return json;
}

std::string project_line(const Project& project) {
  std::string line = format_text("{}: {}", project.root, state_name(project));
  if (project.n_all > 0) line += format_text(", {} % done", 100 * project.n_done / project.n_all);
  if (!project.problem.empty()) line += ": " + project.problem;
  return line + "\n";
}

ToolAnswer show_projects(std::span<const Project> projects) {
  ToolAnswer answer;
  Json shown = Json::array();
  for (const Project& project : projects) {
    answer.text += project_line(project);
    shown.push_back(project_json(project));
  }
  answer.json = {{"projects", std::move(shown)}};
  return answer;
}

Result<ToolAnswer> call_list_projects(CorpusView& corpus, const Json& /*arguments*/) {
  Result<Corpus::Reader> reader = corpus.reader();
  if (!reader) return std::unexpected(reader.error());
  const Result<std::vector<Project>> projects = reader->projects();
  if (!projects) return std::unexpected(projects.error());
  ToolAnswer answer = show_projects(*projects);
  if (projects->empty()) {
    answer.text =
        "The index has no projects: the user adds one with 'slipstream index add FOLDER'.";
  }
  return answer;
}

Result<ToolAnswer> call_add_project(CorpusView& corpus, const Json& arguments) {
  const Result<Project> project = corpus.add(text_of(arguments, "folder"));
  if (!project) return std::unexpected(project.error());
  ToolAnswer answer{.text = project_line(*project), .json = project_json(*project)};
  answer.text += "It is read now: wait_until_fresh waits for it.";
  return answer;
}

Result<ToolAnswer> call_index_status(CorpusView& corpus, const Json& arguments) {
  Result<Corpus::Reader> reader = corpus.reader();
  if (!reader) return std::unexpected(reader.error());
  Result<std::vector<Project>> projects = named_projects(*reader, arguments);
  if (!projects) return std::unexpected(projects.error());
  const Freshness freshness = corpus.sync(*reader, *projects);
  ToolAnswer answer;
  Json shown = Json::array();
  for (const Project& project : *projects) {
    const Result<ProjectCounts> counts = count_project(reader->database(), project.id);
    if (!counts) return std::unexpected(counts.error());
    answer.text += project_line(project);
    answer.text += format_text("  {} files, {} of text, {} pieces, {} symbols\n", counts->n_files,
                               format_bytes(static_cast<std::uint64_t>(counts->n_bytes)),
                               counts->n_chunks, counts->n_symbols);
    Json json = project_json(project);
    json["files"] = counts->n_files;
    json["bytes"] = counts->n_bytes;
    json["pieces"] = counts->n_chunks;
    json["symbols"] = counts->n_symbols;
    json["refused"] = Json::object();
    std::string refused;
    for (const auto& [reason, n] : counts->n_refused) {
      refused += format_text("{}{} {}", refused.empty() ? "" : ", ", n, reason);
      json["refused"][reason] = n;
    }
    if (project.n_secret > 0) {
      refused += format_text("{}{} by name (keys, passwords)", refused.empty() ? "" : ", ",
                             project.n_secret);
      json["refused"]["by name"] = project.n_secret;
    }
    if (!refused.empty()) answer.text += format_text("  not read: {}\n", refused);
    shown.push_back(std::move(json));
  }
  answer.text +=
      freshness.is_fresh ? "The index is fresh." : "The index is not fresh: " + freshness.note;
  answer.json = {{"projects", std::move(shown)},
                 {"index", {{"is_fresh", freshness.is_fresh}, {"note", freshness.note}}}};
  return answer;
}

Result<ToolAnswer> call_wait_until_fresh(CorpusView& corpus, const Json& arguments) {
  const std::chrono::seconds seconds(integer_of(arguments, "seconds", kWaitSecondsUsual));
  if (Result<void> waited = corpus.wait_until_fresh(seconds); !waited) {
    return std::unexpected(waited.error());
  }
  Result<Corpus::Reader> reader = corpus.reader();
  if (!reader) return std::unexpected(reader.error());
  Result<std::vector<Project>> projects = reader->projects();
  if (!projects) return std::unexpected(projects.error());
  const Freshness freshness = corpus.sync(*reader, *projects);
  ToolAnswer answer = show_projects(*projects);
  answer.text +=
      freshness.is_fresh
          ? "The index is fresh: it has what was in the files when this was asked."
          : "The index is not fresh yet: " + freshness.note + " Wait again, or go on with it.";
  answer.json["index"] = {{"is_fresh", freshness.is_fresh}, {"note", freshness.note}};
  return answer;
}

}  // namespace

Tool list_projects_tool() {
  return {.name = "list_projects",
          .title = "List the folders of the index",
          .description =
              "Lists the user's folders that can be searched, and how far each has been read.",
          .schema = object_schema(Json::object()),
          .call = call_list_projects};
}

Tool add_project_tool() {
  return {.name = "add_project",
          .title = "Add a folder to the index",
          .description =
              "Reads a folder of this machine into the index and keeps it up to date from then on. "
              "Files of secrets, and what .gitignore leaves out, are not read.",
          .schema = object_schema(
              {{"folder", text_schema("The whole path of the folder", kFolderLettersMax)}},
              Json::array({"folder"})),
          .only_reads = false,
          .call = call_add_project};
}

Tool index_status_tool() {
  return {
      .name = "index_status",
      .title = "Show the state of the index",
      .description =
          "Shows what the index has of each folder, what it refused and why, and whether it is "
          "fresh.",
      .schema = object_schema(
          {{"project", text_schema("Only this project. Default: all of them", kFolderLettersMax)}}),
      .call = call_index_status};
}

Tool wait_until_fresh_tool() {
  return {.name = "wait_until_fresh",
          .title = "Wait until the index is fresh",
          .description =
              "Waits until the index has everything that is in the files now, such as after many "
              "of them "
              "were changed, or a folder was added.",
          .schema = object_schema(
              {{"seconds", integer_schema("Wait at most so long", 1, kMcpLimits.wait_seconds_max,
                                          kWaitSecondsUsual)}}),
          .call = call_wait_until_fresh};
}

std::vector<Tool> tools_for(const Corpus& corpus) {
  std::vector<Tool> tools = {search_tool(), read_lines_tool(), find_symbol_tool(),
                             find_related_tool(), list_projects_tool()};
  if (corpus.clients_may_add()) tools.push_back(add_project_tool());
  tools.push_back(index_status_tool());
  tools.push_back(wait_until_fresh_tool());
  return tools;
}

}  // namespace slipstream
