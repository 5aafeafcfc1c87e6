// From a JSON schema to a grammar (GBNF) for the answers that are valid under it: what OpenAI's
// response_format asks for. Which keywords, how answers are spelled, what is refused:
// docs/structured-output.md.
//
// The text is one that Grammar::parse() takes, and that every model can finish. Every text that
// matches is JSON that is valid under the schema. Every valid value matches, if it is spelled as we
// spell it (json_text.h, number_range.h), with its keys in the order of the schema.
//
// Threads: pure functions.
// Errors:  kInvalidArgument for what is no schema or has no valid value, kUnsupported for what
// cannot be obeyed or is larger than SchemaLimits::schema_* allow. The message names the keyword by JSON
// pointer.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

namespace slipstream {

// Of response_format.json_schema.schema. Ordered, because the order of `properties` counts.
[[nodiscard]] Result<std::string> grammar_of_schema(const nlohmann::ordered_json& schema);

// Of response_format.type "json_object": any JSON object.
[[nodiscard]] std::string grammar_of_any_object();

}  // namespace slipstream
