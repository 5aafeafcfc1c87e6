// Converts a JSON schema to a grammar (GBNF) of the answers that are valid under it, as OpenAI's
// response_format demands. docs/structured-output.md lists the keywords, spellings and refusals.
//
// Grammar::parse() accepts the text, and a model can always complete an answer. Every text that
// matches is JSON that is valid under the schema. Every valid value matches if it has the
// spelling of json_text.h and number_range.h, with its keys in the order of the schema.
//
// Threads: pure functions.
// Errors:  kInvalidArgument for what is not a schema or has no valid value; kUnsupported for
//          what cannot be obeyed or exceeds SchemaLimits::schema_*. The message names the
//          keyword by JSON pointer.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

namespace slipstream {

// For response_format.json_schema.schema. The JSON is ordered because the order
// of `properties` matters.
[[nodiscard]] Result<std::string> grammar_of_schema(const nlohmann::ordered_json& schema);

// For response_format.type "json_object": any JSON object.
[[nodiscard]] std::string grammar_of_any_object();

}  // namespace slipstream
