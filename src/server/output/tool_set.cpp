#include "server/output/tool_set.h"

#include <algorithm>

#include "server/json.h"

namespace slipstream {
namespace {

ParameterType type_of_schema(const Json& schema) {
  if (const Json* type = member(schema, "type"); type != nullptr) {
    if (type->is_string()) {
      return *type == "string" ? ParameterType::kText : ParameterType::kNotText;
    }
    const bool may_be_text =
        type->is_array() && std::ranges::find(*type, Json("string")) != type->end();
    return may_be_text || !type->is_array() ? ParameterType::kUnknown : ParameterType::kNotText;
  }
  if (const Json* values = member(schema, "enum"); values != nullptr && values->is_array()) {
    const bool all_texts =
        std::ranges::all_of(*values, [](const Json& v) { return v.is_string(); });
    if (all_texts) return ParameterType::kText;
  }
  return ParameterType::kUnknown;
}

}  // namespace

ToolSet::ToolSet(const nlohmann::ordered_json& tools) {
  if (!tools.is_array()) return;
  Tools known;
  for (const Json& tool : tools) {
    const Json* function = member(tool, "function");
    const Json* name = function == nullptr ? nullptr : member(*function, "name");
    if (name == nullptr || !name->is_string()) continue;
    Parameters parameters;
    const Json* schema = member(*function, "parameters");
    const Json* properties = schema == nullptr ? nullptr : member(*schema, "properties");
    if (properties != nullptr && properties->is_object()) {
      for (const auto& [key, value] : properties->items()) {
        parameters.emplace(key, type_of_schema(value));
      }
    }
    known.insert_or_assign(name->get<std::string>(), std::move(parameters));
  }
  tools_ = std::make_shared<const Tools>(std::move(known));
}

ParameterType ToolSet::type_of(std::string_view tool, std::string_view parameter) const {
  if (!tools_) return ParameterType::kUnknown;
  const auto parameters = tools_->find(tool);
  if (parameters == tools_->end()) return ParameterType::kUnknown;
  const auto type = parameters->second.find(parameter);
  return type == parameters->second.end() ? ParameterType::kUnknown : type->second;
}

}  // namespace slipstream
