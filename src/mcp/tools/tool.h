// Tool: something that a client can call, with a schema of its arguments.
//
// Arguments are checked against the schema before the call: what the schema says holds in it.
//
// Threads: immutable; calls are thread-safe.
// Errors:  of a call: what a model can do about it is in the message.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "mcp/corpus.h"
#include "mcp/json_rpc.h"

namespace slipstream {

// The same, in words and as JSON.
struct ToolAnswer {
  std::string text;
  Json json;
};

struct Tool {
  std::string name;
  std::string title;
  std::string description;
  Json schema;             // of the arguments
  bool only_reads = true;  // changes nothing
  Result<ToolAnswer> (*call)(CorpusView& corpus, const Json& arguments);
};

// Those that clients of the corpus can call, always in the same order.
[[nodiscard]] std::vector<Tool> tools_for(const Corpus& corpus);

// Why arguments are not as a tool's schema says; nullopt: they are. Only what our schemas have: an
// object of texts and integers, each with limits.
[[nodiscard]] std::optional<std::string> why_wrong(const Json& schema, const Json& arguments);
// The schema of an object with these members and no others.
[[nodiscard]] Json object_schema(Json properties, Json required = Json::array());
[[nodiscard]] Json text_schema(std::string_view description, int n_letters_max);
[[nodiscard]] Json integer_schema(std::string_view description, int min, int max, Json usual = {});

// Members of arguments that have been checked.
[[nodiscard]] std::string text_of(const Json& arguments, std::string_view name);
[[nodiscard]] int integer_of(const Json& arguments, std::string_view name, int usual);

[[nodiscard]] Tool search_tool();
[[nodiscard]] Tool read_lines_tool();
[[nodiscard]] Tool find_symbol_tool();
[[nodiscard]] Tool find_related_tool();
[[nodiscard]] Tool list_projects_tool();
[[nodiscard]] Tool add_project_tool();
[[nodiscard]] Tool index_status_tool();
[[nodiscard]] Tool wait_until_fresh_tool();

// Those that an argument "project" names, or all that the client sees.
[[nodiscard]] Result<std::vector<Project>> named_projects(Corpus::Reader& reader,
                                                          const Json& arguments);
// A file that the arguments "path" and "project" name: relative to a project, or a whole path.
struct NamedFile {
  Project project;
  std::string path;
};
[[nodiscard]] Result<NamedFile> named_file(Corpus::Reader& reader, const Json& arguments);

// How places of an index are shown.
[[nodiscard]] ToolAnswer show_places(std::span<const Found> places, std::string_view terms_are,
                                     const Freshness& freshness);
// The start of a text, at most so many bytes, cut between characters.
[[nodiscard]] std::string_view start_of(std::string_view text, std::size_t n_bytes_max);

}  // namespace slipstream
