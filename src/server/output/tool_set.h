// ToolSet: the names of a request's tools and the types of their parameters, for the parsers.
//
// In formats without types ("<parameter=n>5</parameter>"), the tool's JSON schema decides whether 5
// is a number or a string.
//
// Threads: immutable.
// Errors:  none; an entry that is not in the form of OpenAI's API is not a tool.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace slipstream {

enum class ParameterType {
  kUnknown,  // the schema does not say, or also allows a string
  kText,
  kNotText,  // a number, an object, ...
};

class ToolSet {
 public:
  ToolSet() = default;
  // `tools` as in a request: [{"type": "function", "function": {"name", "parameters"}}, ...]
  explicit ToolSet(const nlohmann::ordered_json& tools);

  [[nodiscard]] bool empty() const { return !tools_ || tools_->empty(); }
  [[nodiscard]] bool contains(std::string_view name) const {
    return tools_ && tools_->contains(name);
  }
  [[nodiscard]] ParameterType type_of(std::string_view tool, std::string_view parameter) const;

 private:
  using Parameters = std::map<std::string, ParameterType, std::less<>>;
  using Tools = std::map<std::string, Parameters, std::less<>>;
  std::shared_ptr<const Tools> tools_;  // shared by the parsers of all answers to one request
};

}  // namespace slipstream
