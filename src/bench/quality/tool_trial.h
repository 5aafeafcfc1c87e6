// Unconstrained tool calls: a model is offered one tool and asked for something that needs it, and
// the server's own parsers read its answer. Also answers under a JSON schema, constrained by the
// server's grammars: all of them must be valid, but they are measured nevertheless.
//
// The validator reads the schema independently of the grammars (server/schema/naive_validator.h).
//
// Threads: pure functions. Errors: those of Asker::ask().
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "bench/quality/asker.h"
#include "bench/quality/divergence_pass.h"

namespace slipstream::quality {

struct ToolCallOutcome {
  std::string asked = {};   // the name to look up
  std::string answer = {};  // "name(arguments)", or the text that came instead
  bool is_call = false;     // exactly one complete call
  bool right_name = false;
  bool valid = false;        // the right name, and arguments that are valid under the tool's schema
  bool as_expected = false;  // valid, and with the name that was asked for
};

struct SchemaOutcome {
  std::string schema = {};  // its title
  std::string answer = {};
  bool valid = false;
};

[[nodiscard]] Result<std::vector<ToolCallOutcome>> try_tool_calls(const Asker& asker, int n_calls,
                                                                  const OnProgress& on_progress);
[[nodiscard]] Result<std::vector<SchemaOutcome>> try_schemas(const Asker& asker,
                                                             const OnProgress& on_progress);

// Judges an answer to "look up `asked`".
[[nodiscard]] ToolCallOutcome judge_tool_call(const ChatAnswer& answer, const std::string& asked);

}  // namespace slipstream::quality
