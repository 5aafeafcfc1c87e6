// ToolSet: what a request's tools say that a parser needs: their names and the types of their
// parameters.
//
// Formats without types ("<parameter=n>5</parameter>") leave it to the tool's JSON schema whether 5
// is a number or a text.
//
// Threads: immutable. Errors: none; what is not as OpenAI's API writes tools is not a tool.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace slipstream {

enum class ParameterType {
  kUnknown,  // the schema does not say, or allows a text among others
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
  std::shared_ptr<const Tools> tools_;  // by the parsers of all answers to one request
};

}  // namespace slipstream
