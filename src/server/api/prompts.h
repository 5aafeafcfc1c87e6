// Prompts: texts or tokens for the model, in the form that several kinds of requests use.
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

// Whether the value can be a token id. The vocabulary may be smaller than this allows.
[[nodiscard]] bool is_token(const Json& value);

// Reads "text", ["text", ...], [1, 2, ...] or [[1, 2, ...], ...].
[[nodiscard]] std::vector<Prompt> read_prompts(JsonFields& fields, std::string_view name,
                                               std::size_t n_max);

}  // namespace slipstream
