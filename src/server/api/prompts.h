// Prompts: texts for the model, or tokens, as several bodies have them.
//
// Threads: plain data. Errors: 400 that names the field.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "engine/request.h"
#include "server/api/json_fields.h"

namespace slipstream {

using Prompt = std::variant<std::string, std::vector<Token>>;

// Whether it could be one; a vocabulary may have fewer.
[[nodiscard]] bool is_token(const Json& value);

// "text", ["text", ...], [1, 2, ...] or [[1, 2, ...], ...]
[[nodiscard]] std::vector<Prompt> read_prompts(JsonFields& fields, std::string_view name,
                                               std::size_t n_max);

}  // namespace slipstream
