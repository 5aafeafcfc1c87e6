#include <algorithm>

#include "base/format.h"
#include "base/utf8.h"
#include "mcp/tools/tool.h"
#include "retrieval/search/indexed_file.h"

namespace slipstream {
namespace {

std::size_t n_letters(std::string_view text) {
  std::size_t n = 0;
  for (; !text.empty(); ++n) text.remove_prefix(decode_utf8(text).n_bytes);
  return n;
}

std::optional<std::string> why_wrong_value(std::string_view name, const Json& schema,
                                           const Json& value) {
  if (schema["type"] == "string") {
    const auto min = schema["minLength"].get<std::size_t>();
    const auto max = schema["maxLength"].get<std::size_t>();
    if (!value.is_string()) return format_text("'{}' must be a text", name);
    const std::size_t n = n_letters(value.get_ref<const std::string&>());
    if (n >= min && n <= max) return std::nullopt;
    return format_text("'{}' must have {} to {} characters", name, min, max);
  }
  const auto min = schema["minimum"].get<std::int64_t>();
  const auto max = schema["maximum"].get<std::int64_t>();
  // A JSON text can have numbers that are larger than any integer.
  const bool fits = value.is_number_unsigned()
                        ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(max) &&
                              value.get<std::int64_t>() >= min
                        : value.is_number_integer() && value.get<std::int64_t>() >= min &&
                              value.get<std::int64_t>() <= max;
  if (fits) return std::nullopt;
  return format_text("'{}' must be an integer from {} to {}", name, min, max);
}

}  // namespace

std::optional<std::string> why_wrong(const Json& schema, const Json& arguments) {
  if (!arguments.is_object()) return "the arguments must be an object";
  const Json& properties = schema["properties"];
  for (const auto& [name, value] : arguments.items()) {
    const Json* property = rpc_member(properties, name);
    if (property == nullptr) {
      std::string names;
      for (const auto& [known, unused] : properties.items())
        names += (names.empty() ? "" : ", ") + known;
      return names.empty()
                 ? std::string("there are no arguments")
                 : format_text("there is no argument '{}': there are {}", rpc_quoted(name), names);
    }
    if (auto wrong = why_wrong_value(name, *property, value)) return wrong;
  }
  if (const Json* required = rpc_member(schema, "required")) {
    for (const Json& name : *required) {
      if (!arguments.contains(name.get_ref<const std::string&>())) {
        return format_text("'{}' is missing", name.get_ref<const std::string&>());
      }
    }
  }
  return std::nullopt;
}

Json object_schema(Json properties, Json required) {
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

Json text_schema(std::string_view description, int n_letters_max) {
  return {{"type", "string"},
          {"minLength", 1},
          {"maxLength", n_letters_max},
          {"description", description}};
}

Json integer_schema(std::string_view description, int min, int max, Json usual) {
  Json schema = {
      {"type", "integer"}, {"minimum", min}, {"maximum", max}, {"description", description}};
  if (!usual.is_null()) schema["default"] = std::move(usual);
  return schema;
}

std::string text_of(const Json& arguments, std::string_view name) {
  const Json* value = rpc_member(arguments, name);
  return value == nullptr ? std::string() : value->get<std::string>();
}

int integer_of(const Json& arguments, std::string_view name, int usual) {
  const Json* value = rpc_member(arguments, name);
  return value == nullptr ? usual : value->get<int>();
}

Result<std::vector<Project>> named_projects(Corpus::Reader& reader, const Json& arguments) {
  Result<std::vector<Project>> projects = reader.projects();
  if (!projects) return projects;
  const std::string named = text_of(arguments, "project");
  if (named.empty() && !projects->empty()) return projects;
  Result<Project> project = choose_project(*projects, named.empty() ? "-" : named);
  if (!project) return std::unexpected(project.error());
  return std::vector<Project>{std::move(*project)};
}

Result<NamedFile> named_file(Corpus::Reader& reader, const Json& arguments) {
  std::string path = text_of(arguments, "path");
  const Result<std::vector<Project>> projects = named_projects(reader, arguments);
  if (!projects) return std::unexpected(projects.error());
  if (path.starts_with('/')) {
    for (const Project& project : *projects) {
      if (path.starts_with(project.root + "/")) {
        return NamedFile{.project = project, .path = path.substr(project.root.size() + 1)};
      }
    }
    return choose_project(*projects, path).transform([](const Project& project) {
      return NamedFile{.project = project, .path = {}};
    });
  }
  while (path.starts_with("./")) path.erase(0, 2);
  std::optional<NamedFile> found;
  for (const Project& project : *projects) {
    const Result<IndexedFile> file = find_indexed_file(reader.database(), project, path);
    if (!file && file.error().code == Code::kNotFound) continue;
    if (found) {
      return fail(Code::kInvalidArgument,
                  format_text("both {} and {} have {}: say which as 'project'", found->project.root,
                              project.root, path));
    }
    found = NamedFile{.project = project, .path = path};
  }
  if (found) return *found;
  return NamedFile{.project = projects->front(), .path = path};
}

std::string_view start_of(std::string_view text, std::size_t n_bytes_max) {
  if (text.size() <= n_bytes_max) return text;
  // Back to the first byte of the character that does not fit.
  while (n_bytes_max > 0 && (static_cast<unsigned char>(text[n_bytes_max]) & 0xC0U) == 0x80U) {
    --n_bytes_max;
  }
  return text.substr(0, n_bytes_max);
}

}  // namespace slipstream
