#include "server/api/response_tools.h"

#include <set>
#include <utility>

#include "base/format.h"
#include "server/api/json_fields.h"

namespace slipstream {
namespace {

class ToolReader {
 public:
  // space: the namespace that contains the tools; empty: none.
  ApiResult<void> read(Json& tools, const std::string& path, const std::string& space) {
    if (!tools.is_array()) return refuse(path, format_text("'{}' must be an array", path));
    for (std::size_t i = 0; i < tools.size(); ++i) {
      if (auto added = add(tools[i], format_text("{}[{}]", path, i), space); !added) return added;
    }
    return {};
  }
  ResponseTools result;

 private:
  ApiResult<void> add(Json& tool, const std::string& path, const std::string& space) {
    const Json* type = member(tool, "type");
    if (type == nullptr || !type->is_string()) {
      return refuse(path, format_text("'{}' must be an object with a type", path));
    }
    const bool is_space = *type == "namespace" && space.empty();
    if (!is_space && *type != "function") return {};
    JsonFields fields(tool, path);
    const std::string name = fields.text("name").value_or("");
    if (fields.error()) return std::unexpected(*fields.error());
    if (name.empty()) {
      return refuse(path + ".name", format_text("'{}.name' must be a string", path));
    }
    if (is_space) {
      Json tools = take(tool, "tools");
      return tools.is_null() ? ApiResult<void>() : read(tools, path + ".tools", name);
    }
    // The first function of a name counts: a call could not tell two apart.
    if (!names_.insert(name).second) return {};
    if (!space.empty()) result.spaces[name] = space;
    Json function = {{"name", name}};
    if (Json text = take(tool, "description"); !text.is_null()) {
      function["description"] = std::move(text);
    }
    Json parameters = take(tool, "parameters");
    const bool has_none = parameters.is_null();
    function["parameters"] =
        has_none ? Json{{"type", "object"}, {"properties", Json::object()}} : std::move(parameters);
    result.functions.push_back({{"type", "function"}, {"function", std::move(function)}});
    result.paths.push_back(path);
    return {};
  }

  std::set<std::string> names_;
};

std::unexpected<ApiError> wrong_choice() {
  return refuse("tool_choice",
                "'tool_choice' must be \"none\", \"auto\", \"required\", {\"type\": \"function\", "
                "\"name\": ...} or {\"type\": \"allowed_tools\", \"mode\": ..., \"tools\": [...]}");
}

// Keeps the tools that are named, in the order of "tools": the prompt depends on the order.
ApiResult<Json> allow(const Json& choice, ResponseTools& tools) {
  const Json* mode = member(choice, "mode");
  const Json* allowed = member(choice, "tools");
  const bool is_known = mode != nullptr && (*mode == "auto" || *mode == "required");
  if (!is_known || allowed == nullptr || !allowed->is_array()) return wrong_choice();
  std::set<std::string> names;
  for (const Json& tool : *allowed) {
    const Json* name = member(tool, "name");
    if (name != nullptr && name->is_string()) names.insert(name->get<std::string>());
  }
  ResponseTools kept{.spaces = std::move(tools.spaces)};
  for (std::size_t i = 0; i < tools.functions.size(); ++i) {
    if (!names.contains(tools.functions[i]["function"]["name"].get<std::string>())) continue;
    kept.functions.push_back(std::move(tools.functions[i]));
    kept.paths.push_back(std::move(tools.paths[i]));
  }
  tools = std::move(kept);
  return *mode;
}

}  // namespace

ApiResult<ResponseTools> read_response_tools(Json tools) {
  if (tools.is_null()) return ResponseTools{};
  ToolReader reader;
  if (auto read = reader.read(tools, "tools", ""); !read) return std::unexpected(read.error());
  return std::move(reader.result);
}

ApiResult<Json> read_response_tool_choice(Json choice, ResponseTools& tools) {
  if (choice.is_null() || choice.is_string()) return choice;
  const Json* type = member(choice, "type");
  if (type != nullptr && *type == "allowed_tools") return allow(choice, tools);
  const Json* name = member(choice, "name");
  if (type == nullptr || *type != "function" || name == nullptr || !name->is_string()) {
    return wrong_choice();
  }
  return Json{{"type", "function"}, {"function", {{"name", *name}}}};
}

}  // namespace slipstream
