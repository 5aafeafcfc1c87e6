#include "server/api/prompts.h"

#include <algorithm>

#include "base/format.h"

namespace slipstream {
namespace {

bool is_tokens(const Json& value) {
  return value.is_array() && !value.empty() && std::ranges::all_of(value, is_token);
}

}  // namespace

bool is_token(const Json& value) {
  return value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
         value.get<std::int64_t>() <= INT32_MAX;
}

std::vector<Prompt> read_prompts(JsonFields& fields, std::string_view name, std::size_t n_max) {
  const Json* prompt = fields.any(name);
  if (prompt == nullptr) {
    fields.refuse(name, format_text("'{}' is required", name));
    return {};
  }
  if (prompt->is_string()) return {prompt->get<std::string>()};
  if (is_tokens(*prompt)) return {prompt->get<std::vector<Token>>()};
  std::vector<Prompt> prompts;
  if (prompt->is_array() && prompt->size() <= n_max) {
    for (const Json& item : *prompt) {
      if (item.is_string()) {
        prompts.emplace_back(item.get<std::string>());
      } else if (is_tokens(item)) {
        prompts.emplace_back(item.get<std::vector<Token>>());
      }
    }
    if (!prompts.empty() && prompts.size() == prompt->size()) return prompts;
  }
  fields.refuse(name, format_text("'{}' must be a string, an array of token ids, or an array of 1 "
                                  "to {} of these",
                                  name, n_max));
  return {};
}

}  // namespace slipstream
